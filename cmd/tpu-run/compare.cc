#include "compare.h"

#include "bisect.h"
#include "tpu/eval/compare.h"
#include "tpu/eval/tensor_text.h"
#include "tpu/serial/array_file.h"
#include "tpu/support/units.h"

namespace tpu::run {
namespace {

llvm::Expected<eval::Tolerance> toleranceFor(Tool& tool, ElementType element, llvm::StringRef precision) {
  eval::Tolerance t = tool.has("ulp") && !tool.has("rtol") && !tool.has("atol")
                          ? eval::Tolerance()
                          : eval::defaultTolerance(element, precision);
  if (tool.has("rtol") != tool.has("atol")) t.relative = t.absolute = 0;
  const auto number = [&](llvm::StringRef flag, double& out) -> llvm::Error {
    if (!tool.has(flag)) return llvm::Error::success();
    auto value = tool.getNonNegative(flag);
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

// How a difference is told: the words for the two sides, and whose elements they are.
struct Telling {
  const char *got, *want;
  bool device_and_ulps;
};
constexpr Telling kExpectation = {"got", "expected", false};
constexpr Telling kOther = {"here", "there", true};

std::string firstDifference(const Program& program, size_t index, const HostTensor& got, const HostTensor& want,
                            const eval::Difference& d, const Telling& telling) {
  std::string text = "first at " + eval::indexText(got.dims, d.first);
  if (telling.device_and_ulps)
    if (const auto device = program.ownerOf(index, d.first)) text += " on device " + std::to_string(*device);
  text += std::string(": ") + telling.got + " " + eval::elementText(got, d.first) + ", " + telling.want + " " +
          eval::elementText(want, d.first);
  if (telling.device_and_ulps)
    if (const auto ulps = eval::ulpsApart(got, want, d.first)) text += ", " + plural(*ulps, "ULP") + " apart";
  return text;
}

llvm::Error compareAll(Tool& tool, const Program& program, llvm::StringRef precision, llvm::ArrayRef<HostTensor> results,
                       llvm::ArrayRef<Expected> expected, const Telling& telling) {
  llvm::Error all = llvm::Error::success();
  for (const Expected& e : expected) {
    const HostTensor& got = results[e.index];
    auto tolerance = toleranceFor(tool, got.element, precision);
    if (!tolerance) return llvm::joinErrors(std::move(all), tolerance.takeError());
    const auto d = eval::compareTensors(got, e.want, *tolerance);
    if (!d) continue;
    std::string limit = "atol " + shortest(tolerance->absolute) + ", rtol " + shortest(tolerance->relative);
    if (tolerance->ulps) limit += ", ulp " + std::to_string(tolerance->ulps);
    const bool dots = got.element == ElementType::kF32 && precision != "highest";
    all = llvm::joinErrors(
        std::move(all),
        fail(Code::kResultsDiffer, "",
             portText("result", e.index, program.signature().results[e.index]) + ": " +
                 llvm::Twine(d->differing) + " of " + llvm::Twine(got.numElements()) + " elements differ, " +
                 firstDifference(program, e.index, got, e.want, *d, telling) + "; largest difference " +
                 shortest(d->largest) + " (" + limit + (dots ? "; dots at precision " + precision.str() : "") + ")",
             ExitStatus::kDiffers));
  }
  return all;
}

std::string portsText(llvm::ArrayRef<Port> ports) {
  std::string text;
  for (const Port& p : ports) text += (text.empty() ? "" : ", ") + typeText(p.element, p.dims);
  return "(" + text + ")";
}

bool samePorts(llvm::ArrayRef<Port> a, llvm::ArrayRef<Port> b) {
  return a.size() == b.size() && llvm::equal(a, b, [](const Port& x, const Port& y) {
           return x.element == y.element && x.dims == y.dims;
         });
}

// Results of a file, by name or position.
llvm::Expected<std::vector<Expected>> readRecorded(Tool& tool, llvm::StringRef path, const Signature& signature) {
  auto arrays = readArrayFile(path);
  if (!arrays) return arrays.takeError();
  tool.dependsOn(path);
  std::vector<Expected> out;
  for (size_t i = 0; i < signature.results.size(); ++i) {
    const Port& port = signature.results[i];
    for (FileArray& a : *arrays) {
      const bool alone = arrays->size() == 1 && signature.results.size() == 1;
      if (!alone && !sameName(a.name, port.name) && a.name != std::to_string(i)) continue;
      if (llvm::ArrayRef<int64_t>(a.dims) != llvm::ArrayRef<int64_t>(port.dims))
        return fail(Code::kEvalWrongInputs, path.str(),
                    portText("result", i, port) + ": the file holds " + describe(a) + ", the program gives " +
                        typeText(port.element, port.dims));
      auto tensor = toTensor(std::move(a), port.element, false, portText("result", i, port));
      if (!tensor) return tensor.takeError();
      out.push_back({i, std::move(*tensor)});
      break;
    }
  }
  if (out.empty())
    return fail(Code::kEvalWrongInputs, path.str(), "no array of the file has the name or the position of a result");
  return out;
}

// Of two programs the less exact one sets the tolerance.
std::string loosest(const std::string& a, const std::string& b) {
  for (const char* precision : {"default", "high"})
    if (a == precision || b == precision) return precision;
  return "highest";
}

// A note that names the op, or says that none was found.
llvm::Error bisect(Tool& tool, const Program& program, const Other& other, const std::vector<HostTensor>& inputs) {
  const auto tolerance = [&](ElementType element) {  // the flags were read once before, without an error
    return llvm::cantFail(toleranceFor(tool, element, program.precision()));
  };
  auto parting = findParting(*program.module(), *other.program->module(), inputs, tolerance);
  if (!parting) return parting.takeError();
  Diagnostic note;
  note.severity = Severity::kNote;
  note.code = Code::kResultsDiffer;
  note.loc = parting->loc;
  const std::string agreed = std::to_string(parting->agreed) + " of " + plural(static_cast<uint64_t>(parting->matched), "matching op");
  if (!parting->found) {
    note.text = agreed + " agree; values part in ops that the two programs do not share";
  } else {
    note.text = "values part at " + parting->op + ": " + std::to_string(parting->difference.differing) + " of " +
                std::to_string(parting->here.numElements()) + " elements differ, first at " +
                eval::indexText(parting->dims, parting->difference.first);
    if (parting->device) note.text += " on device " + std::to_string(*parting->device);
    note.text += ": here " + eval::elementText(parting->here, parting->difference.first) + ", there " +
                 eval::elementText(parting->there, parting->difference.first) + "; " + agreed + " before it agree";
  }
  tool.diagnostics().report(note);
  return llvm::Error::success();
}

}  // namespace

llvm::Error compareWithExpected(Tool& tool, const Program& program, llvm::ArrayRef<HostTensor> results,
                                llvm::ArrayRef<Expected> expected) {
  if (llvm::Error e = compareAll(tool, program, program.precision(), results, expected, kExpectation)) return e;
  if (!expected.empty()) tool.summary() << plural(expected.size(), "result") << " as expected\n";
  return llvm::Error::success();
}

llvm::Expected<Other> openOther(Tool& tool, const Signature& signature) {
  Other other;
  llvm::StringRef path = tool.get("compare-to");
  other.name = path.str();
  if (path.consume_front("@")) {
    auto recorded = readRecorded(tool, path, signature);
    if (!recorded) return recorded.takeError();
    other.recorded = std::move(*recorded);
    return other;
  }
  auto in = readInput(path);
  if (!in) return in.takeError();
  tool.dependsOn(path);
  auto program = openProgram(tool, *in);
  if (!program) return program.takeError();
  const Signature& theirs = (*program)->signature();
  if (!samePorts(signature.args, theirs.args) || !samePorts(signature.results, theirs.results))
    return fail(Code::kEvalWrongInputs, in->name,
                "the programs do not compute the same thing: this one takes " + portsText(theirs.args) + " and gives " +
                    portsText(theirs.results) + ", the other takes " + portsText(signature.args) + " and gives " +
                    portsText(signature.results));
  other.program = std::move(*program);
  return other;
}

llvm::Error compareWithOther(Tool& tool, const Program& program, llvm::ArrayRef<HostTensor> results, Other& other,
                             std::vector<HostTensor> inputs) {
  std::string precision = program.precision();
  if (other.program) {
    auto theirs = other.program->run(inputs, tool, Record::kNothing);
    if (!theirs) return theirs.takeError();
    for (size_t i = 0; i < theirs->size(); ++i) other.recorded.push_back({i, std::move((*theirs)[i])});
    precision = loosest(precision, other.program->precision());
  }
  if (llvm::Error e = compareAll(tool, program, precision, results, other.recorded, kOther)) {
    if (!tool.has("bisect")) return e;
    return llvm::joinErrors(std::move(e), bisect(tool, program, other, inputs));
  }
  tool.summary() << plural(other.recorded.size(), "result") << " as " << other.name << " has them\n";
  return llvm::Error::success();
}

}  // namespace tpu::run
