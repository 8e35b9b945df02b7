// Helpers of the HLO tests: a function to build in, and errors as text.
#pragma once
#include <gtest/gtest.h>

#include "tpu/hlo/builder.h"
#include "tpu/hlo/print.h"
#include "tpu/hlo/verify.h"
#include "tpu/support/diagnostics.h"

namespace tpu::hlo {

inline std::string complaint(llvm::Error error) {
  std::string text;
  for (const Diagnostic& d : takeDiagnostics(std::move(error))) text += (text.empty() ? "" : "\n") + d.text;
  return text;
}

/// A module with an empty @main and a builder at its end.
struct Main {
  Module m;
  FuncId func = m.addFunc("main", false);
  Builder b{m, m.func(func).body, m.internLoc("t.py:1:1")};

  Main() { m.entry = func; }
  TypeId t(ElementType element, llvm::ArrayRef<int64_t> dims) { return m.tensorType(element, dims); }
  TypeId f32(llvm::ArrayRef<int64_t> dims) { return t(ElementType::kF32, dims); }
  TypeId s32(llvm::ArrayRef<int64_t> dims) { return t(ElementType::kS32, dims); }
  ValueId arg(TypeId type) {
    m.funcs[func.v].arg_ports.emplace_back();
    return m.addArg(m.func(func).body, type, b.loc);
  }
  /// Ends the function.
  void finish(llvm::ArrayRef<ValueId> results) {
    for (ValueId v : results) {
      m.funcs[func.v].result_types.push_back(m.value(v).type);
      m.funcs[func.v].result_ports.emplace_back();
    }
    b.yield(results);
  }
  std::string check() { return complaint(verify(m)); }
  std::string text() {
    PrintOptions options;
    options.locations = false;
    return toText(m, options);
  }
};

}  // namespace tpu::hlo
