// Results to files and to the screen.
#include "arrays.h"
#include "compare.h"
#include "tpu/eval/interpreter_text.h"
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
      if (tool.get("print") != "values") {
        hlo::Type type;
        type.element = results[i].element;
        type.dims = results[i].dims;
        const std::string spelled = eval::mlirTypeText(hlo::Module(), type);
        (tool.get("print") == "dense" ? eval::printDense : eval::printInterpreted)(os, spelled, results[i]);
        os << '\n';
        continue;
      }
      os << portText("result", i, s.results[i]) << ' ' << typeText(results[i].element, results[i].dims)
         << " = ";
      eval::printTensor(os, results[i]);
      os << '\n';
    }
    if (llvm::Error e = writeOutput("-", text, OutputKind::kText)) return e;
  }
  for (size_t i = 0; i < results.size(); ++i)
    tool.summary() << portText("result", i, s.results[i]) << ": " << eval::tensorSummary(results[i]) << '\n';
  return compareWithExpected(tool, program, results, expected);
}

}  // namespace tpu::run
