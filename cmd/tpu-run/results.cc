// Results to files, to the screen, and against what was expected.
#include "arrays.h"
#include "tpu/eval/compare.h"
#include "tpu/eval/tensor_text.h"
#include "tpu/serial/array_file.h"

namespace tpu::run {
namespace {

std::string fileName(const Port& port, size_t index) {
  return port.name.empty() ? std::to_string(index) : plainName(port.name);
}

llvm::Error writeNamed(llvm::StringRef path, llvm::ArrayRef<NamedTensor> tensors) {
  const std::string bytes = path.ends_with(".safetensors") ? writeSafetensors(tensors)
                            : path.ends_with(".npz")       ? writeNpz(tensors)
                                                           : writeNpy(*tensors[0].tensor);
  return writeOutput(path, bytes, OutputKind::kDocument);
}

// "I=@f.npy", or "@f.npz" for all results.
llvm::Error writeOne(Tool& tool, llvm::StringRef text, const Signature& s,
                     llvm::ArrayRef<HostTensor> results) {
  std::vector<NamedTensor> tensors;
  llvm::StringRef path = text;
  if (path.consume_front("@")) {
    if (!path.ends_with(".npz") && !path.ends_with(".safetensors"))
      return tool.badFlag("output",
                          "all results go to an .npz or .safetensors file; name one with I=@" + path);
    for (size_t i = 0; i < results.size(); ++i) tensors.push_back({fileName(s.results[i], i), &results[i]});
    return writeNamed(path, tensors);
  }
  const auto [key, file] = text.split('=');
  path = file;
  if (!path.consume_front("@") || path.empty())
    return tool.badFlag("output", "expected I=@FILE, found '" + text + "'");
  auto index = findPort(s.results, key, "result");
  if (!index) return index.takeError();
  tensors.push_back({fileName(s.results[*index], *index), &results[*index]});
  return writeNamed(path, tensors);
}

llvm::Expected<eval::Tolerance> toleranceFor(Tool& tool, ElementType element, llvm::StringRef precision) {
  eval::Tolerance t = tool.has("ulp") && !tool.has("rtol") && !tool.has("atol")
                          ? eval::Tolerance()
                          : eval::defaultTolerance(element, precision);
  if (tool.has("rtol") != tool.has("atol")) t.relative = t.absolute = 0;
  const auto number = [&](llvm::StringRef flag, double& out) -> llvm::Error {
    if (!tool.has(flag)) return llvm::Error::success();
    auto value = tool.getDouble(flag);
    if (!value) return value.takeError();
    out = *value;
    return llvm::Error::success();
  };
  if (llvm::Error e = number("rtol", t.relative)) return e;
  if (llvm::Error e = number("atol", t.absolute)) return e;
  if (tool.has("ulp")) {
    auto ulps = tool.getInt("ulp", 0, INT64_MAX);
    if (!ulps) return ulps.takeError();
    t.ulps = *ulps;
  }
  t.nan_equal = tool.has("nan-equal");
  return t;
}

std::string shortest(double value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeJsonNumber(os, value);
  return text;
}

llvm::Error compare(Tool& tool, const Program& program, llvm::ArrayRef<HostTensor> results,
                    llvm::ArrayRef<Expected> expected) {
  llvm::Error all = llvm::Error::success();
  for (const Expected& e : expected) {
    const HostTensor& got = results[e.index];
    auto tolerance = toleranceFor(tool, got.element, program.precision());
    if (!tolerance) return llvm::joinErrors(std::move(all), tolerance.takeError());
    const auto d = eval::compareTensors(got, e.want, *tolerance);
    if (!d) continue;
    std::string limit = "atol " + shortest(tolerance->absolute) + ", rtol " + shortest(tolerance->relative);
    if (tolerance->ulps) limit += ", ulp " + std::to_string(tolerance->ulps);
    const bool dots = got.element == ElementType::kF32 && program.precision() != "highest";
    all = llvm::joinErrors(
        std::move(all),
        fail(Code::kResultsDiffer, "",
             portText("result", e.index, program.signature().results[e.index]) + ": " +
                 llvm::Twine(d->differing) + " of " + llvm::Twine(got.numElements()) +
                 " elements differ, first at " + eval::indexText(got.dims, d->first) + ": got " +
                 eval::elementText(got, d->first) + ", expected " + eval::elementText(e.want, d->first) +
                 "; largest difference " + shortest(d->largest) + " (" + limit +
                 (dots ? "; dots at precision " + program.precision() : "") + ")",
             ExitStatus::kDiffers));
  }
  return all;
}

}  // namespace

llvm::Error deliver(Tool& tool, const Program& program, llvm::ArrayRef<HostTensor> results,
                    llvm::ArrayRef<Expected> expected) {
  const Signature& s = program.signature();
  for (const std::string& text : tool.all("output"))
    if (llvm::Error e = writeOne(tool, text, s, results)) return e;
  if (tool.has("print")) {
    std::string text;
    llvm::raw_string_ostream os(text);
    for (size_t i = 0; i < results.size(); ++i) {
      os << portText("result", i, s.results[i]) << ' ' << describe(results[i].element, results[i].dims)
         << " = ";
      eval::printTensor(os, results[i]);
      os << '\n';
    }
    if (llvm::Error e = writeOutput("-", text, OutputKind::kText)) return e;
  }
  for (size_t i = 0; i < results.size(); ++i)
    tool.summary() << portText("result", i, s.results[i]) << ": " << eval::tensorSummary(results[i]) << '\n';
  return compare(tool, program, results, expected);
}

}  // namespace tpu::run
