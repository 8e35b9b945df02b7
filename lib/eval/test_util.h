// Programs as text, evaluated in tests.
#pragma once
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tpu/eval/evaluate.h"
#include "tpu/frontend/frontend.h"

namespace tpu::eval {

struct Collected : DiagnosticSink {
  void report(const Diagnostic& d) override { diagnostics.push_back(d); }
  std::vector<Diagnostic> diagnostics;
};

inline std::string message(llvm::Error e) {
  std::string text;
  for (const Diagnostic& d : takeDiagnostics(std::move(e))) text += d.loc + ": " + d.text + "\n";
  return text;
}

template <class T>
HostTensor tensorOf(ElementType element, llvm::ArrayRef<int64_t> dims, const std::vector<T>& values) {
  HostTensor t(element, dims);
  EXPECT_EQ(t.numElements(), static_cast<int64_t>(values.size()));
  std::copy(values.begin(), values.end(), t.data<T>());
  return t;
}
inline HostTensor f32(llvm::ArrayRef<int64_t> dims, const std::vector<float>& v) {
  return tensorOf(ElementType::kF32, dims, v);
}
inline HostTensor s32(llvm::ArrayRef<int64_t> dims, const std::vector<int32_t>& v) {
  return tensorOf(ElementType::kS32, dims, v);
}

template <class T>
std::vector<T> valuesOf(const HostTensor& t) {
  return std::vector<T>(t.data<T>(), t.data<T>() + t.numElements());
}

/// Parses and runs a program; a failure is a test failure.
inline std::vector<HostTensor> run(const std::string& text, std::vector<HostTensor> inputs = {}) {
  Collected sink;
  auto module = frontend::readProgram(text, "test.mlir", sink);
  if (!module) {
    ADD_FAILURE() << message(module.takeError());
    return {};
  }
  auto out = evaluate(*module, std::move(inputs), &sink);
  if (!out) {
    ADD_FAILURE() << message(out.takeError());
    return {};
  }
  return std::move(*out);
}

}  // namespace tpu::eval
