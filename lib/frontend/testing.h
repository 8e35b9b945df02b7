// Helpers of the frontend tests: read a text or say why it is refused.
#pragma once
#include <gtest/gtest.h>

#include "tpu/frontend/frontend.h"
#include "tpu/hlo/document.h"
#include "tpu/hlo/print.h"
#include "tpu/hlo/stablehlo.h"

namespace tpu::frontend {

struct Collect : DiagnosticSink {
  void report(const Diagnostic& d) override { all.push_back(d); }
  std::vector<Diagnostic> all;
};

inline std::string complaint(llvm::Error error) {
  std::string text;
  for (const Diagnostic& d : takeDiagnostics(std::move(error))) text += d.loc + ": " + d.text;
  return text;
}

/// The module of a text that must be accepted.
inline hlo::Module accept(llvm::StringRef text) {
  Collect sink;
  auto module = readProgram(text, "dir/t.mlir", sink);
  if (module) return std::move(*module);
  ADD_FAILURE() << complaint(module.takeError());
  return hlo::Module();
}

/// "line:col: text" of the refusal, or the text alone where it has no line.
inline std::string refusal(llvm::StringRef text) {
  Collect sink;
  auto module = readProgram(text, "t.mlir", sink);
  if (module) return "accepted";
  std::string all = complaint(module.takeError());
  llvm::StringRef rest = all;
  rest.consume_front("t.mlir:");
  return rest.ltrim().str();
}

/// A module around the body of @main.
inline std::string mainOf(llvm::StringRef signature, llvm::StringRef body) {
  return ("module @m {\n  func.func public @main" + signature + " {\n" + body + "\n  }\n}\n").str();
}

/// The ops of the text view, without module, mesh and function lines and without locations.
inline std::string opsText(const hlo::Module& module) {
  hlo::PrintOptions options;
  options.locations = false;
  std::string all = hlo::toText(module, options), ops;
  for (llvm::StringRef rest = all; !rest.empty();) {
    auto [line, tail] = rest.split('\n');
    if (line.starts_with(" ")) ops += line.drop_front(2).str() + "\n";
    rest = tail;
  }
  return ops;
}

inline std::string document(const hlo::Module& module) {
  std::string out;
  llvm::raw_string_ostream os(out);
  llvm::cantFail(hlo::writeDocument(module, os));
  return out;
}

inline std::string stableHlo(const hlo::Module& module) {
  std::string out;
  llvm::raw_string_ostream os(out);
  hlo::writeStableHlo(module, os);
  return out;
}

}  // namespace tpu::frontend
