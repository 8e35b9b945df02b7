// What the fuzz targets share. A target reads any bytes: they end in an error or in something that can be
// written, and what was written can be read. The programs are built by the preset `fuzz`; packaging/fuzz.py
// runs them.
#pragma once
#include <cstdint>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include "tpu/support/diagnostics.h"

namespace tpu::testing {

struct QuietSink : DiagnosticSink {
  void report(const Diagnostic&) override {}
};

inline llvm::StringRef fuzzBytes(const uint8_t* data, size_t size) {
  return llvm::StringRef(reinterpret_cast<const char*>(data), size);
}

/// The value; where there is none, the error is dropped and null returned.
template <class T>
T* orDropError(llvm::Expected<T>& value) {
  if (value) return &*value;
  takeDiagnostics(value.takeError());
  return nullptr;
}

/// Ends the process: what must hold does not.
[[noreturn]] inline void fuzzFailure(const char* what) {
  llvm::errs() << "broken promise: " << what << "\n";
  __builtin_trap();
}

/// Ends the process where an error came although none may; it is printed.
inline void mustSucceed(llvm::Error error, const char* what) {
  if (!error) return;
  for (const Diagnostic& d : takeDiagnostics(std::move(error))) llvm::errs() << d.loc << ": " << d.text << "\n";
  fuzzFailure(what);
}

}  // namespace tpu::testing
