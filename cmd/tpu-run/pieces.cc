// --split-input and --entry: every piece of a text that holds several programs, and functions other than
// @main.
//
// A program whose results are checked by operations inside it (check.expect_eq and its kin) needs no inputs:
// all functions that take none are run, except those that others call. Every failure is reported; the pieces
// after it run as well.
#include "pieces.h"

#include "tpu/eval/evaluate.h"
#include "tpu/eval/interpreter_text.h"
#include "tpu/frontend/frontend.h"
#include "tpu/serial/array_file.h"
#include "tpu/support/units.h"

namespace tpu::run {
namespace {

struct Session {
  explicit Session(Tool& tool) : tool(tool) {}
  Tool& tool;
  std::string printed;
  std::vector<eval::Probe> probes;
  uint64_t functions = 0, pieces = 0;
};

void printResults(Session& s, const hlo::Module& module, llvm::ArrayRef<HostTensor> results) {
  if (!s.tool.has("print")) return;
  llvm::raw_string_ostream os(s.printed);
  const hlo::Func& func = module.func(module.entry);
  for (size_t i = 0; i < results.size(); ++i) {
    const hlo::Type& type = module.type(func.result_types[i]);
    const std::string text = eval::mlirTypeText(module, type);
    if (type.kind != hlo::TypeKind::kTensor) {
      os << text << '\n';
    } else if (s.tool.get("print") == "dense") {
      eval::printDense(os, text, results[i]);
      os << '\n';
    } else {
      eval::printInterpreted(os, text, results[i]);
      os << '\n';
    }
  }
}

llvm::Error runFunction(Session& s, hlo::Module& module, hlo::FuncId func) {
  module.entry = func;
  llvm::raw_string_ostream printed(s.printed);
  auto results =
      eval::evaluate(module, {}, &s.tool.diagnostics(),
                     {.print = &printed, .probes = &s.probes, .stepwise = true, .any_results = true});
  ++s.functions;
  if (!results) return results.takeError();
  printResults(s, module, *results);
  return llvm::Error::success();
}

llvm::Error runPiece(Session& s, const frontend::Piece& piece, llvm::StringRef file, bool& entry_found) {
  auto module = frontend::readProgram(piece.text, file, s.tool.diagnostics(),
                                      {.first_line = piece.first_line, .any_entry = true});
  if (!module) return module.takeError();
  ++s.pieces;
  const llvm::StringRef entry = s.tool.has("entry") ? s.tool.get("entry") : "main";
  if (entry != "*") {
    const hlo::FuncId func = module->findFunc(entry);
    if (!func) return llvm::Error::success();
    entry_found = true;
    if (!module->region(module->func(func).body).args.empty())
      return fail(Code::kEvalWrongInputs, module->loc(module->func(func).loc),
                  "@" + entry + " takes inputs; a split program is run without");
    return runFunction(s, *module, func);
  }
  llvm::Error all = llvm::Error::success();
  for (hlo::FuncId func : eval::selfContainedFunctions(*module))
    all = llvm::joinErrors(std::move(all), runFunction(s, *module, func));
  return all;
}

// probe1.npy, probe2.npy ... and index.csv, which says which is which.
llvm::Error writeProbes(Session& s) {
  const std::string dir = s.tool.get("probe-output-dir").str();
  std::string index;
  for (size_t i = 0; i < s.probes.size(); ++i) {
    const std::string path = dir + "/probe" + std::to_string(i + 1) + ".npy";
    if (llvm::Error e = writeOutput(path, writeNpy(s.probes[i].value), OutputKind::kDocument)) return e;
    index += s.probes[i].id + "," + s.probes[i].type + "," + path + "\n";
  }
  return writeOutput(dir + "/index.csv", index, OutputKind::kText);
}

}  // namespace

bool runsPieces(const Tool& tool) { return tool.has("split-input") || tool.get("entry") == "*"; }

llvm::Error runPieces(Tool& tool, const Input& input) {
  for (const char* flag :
       {"input", "inputs", "output", "expect", "compare-to", "strict", "trace", "timing-only", "start-skew",
        "max-cycles", "replace-call", "report"})
    if (tool.has(flag))
      return tool.badFlag(flag, "functions that check themselves take no inputs and give no files");
  Session s(tool);
  llvm::Error all = llvm::Error::success();
  std::vector<frontend::Piece> pieces{{input.bytes, 1}};
  if (tool.has("split-input")) pieces = frontend::splitInput(input.bytes);
  bool entry_found = tool.get("entry") == "*";
  for (const frontend::Piece& piece : pieces) {
    if (pieces.size() > 1 && frontend::sniff(piece.text) == frontend::Format::kEmpty) continue;
    all = llvm::joinErrors(std::move(all), runPiece(s, piece, input.name, entry_found));
  }
  if (!all && !entry_found)
    all = tool.badFlag("entry",
                       "no function @" + (tool.has("entry") ? tool.get("entry") : "main") + " in the input");
  if (!s.printed.empty())
    if (llvm::Error e = writeOutput("-", s.printed, OutputKind::kText))
      all = llvm::joinErrors(std::move(all), std::move(e));
  if (tool.has("probe-output-dir"))
    if (llvm::Error e = writeProbes(s)) all = llvm::joinErrors(std::move(all), std::move(e));
  if (all) return all;
  tool.summary() << plural(s.functions, "function") << " of " << plural(s.pieces, "program") << " ran\n";
  return llvm::Error::success();
}

}  // namespace tpu::run
