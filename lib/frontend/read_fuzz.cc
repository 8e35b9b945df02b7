// libFuzzer's entry to reading programs: bytes of any kind end in an error or in a module that can be
// written.
//
//   cmake --preset fuzz && cmake --build --preset fuzz --target frontend_read_fuzz
//   build-fuzz/bin/frontend_read_fuzz CORPUS_DIR testdata/bytecode
#include <cstdint>

#include "llvm/Support/raw_ostream.h"
#include "tpu/frontend/frontend.h"
#include "tpu/hlo/document.h"
#include "tpu/hlo/stablehlo.h"

namespace {

struct Quiet : tpu::DiagnosticSink {
  void report(const tpu::Diagnostic&) override {}
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Quiet quiet;
  llvm::StringRef bytes(reinterpret_cast<const char*>(data), size);
  auto module = tpu::frontend::readProgram(bytes, "fuzz", quiet);
  if (!module) {
    tpu::takeDiagnostics(module.takeError());
    return 0;
  }
  llvm::cantFail(tpu::hlo::writeDocument(*module, llvm::nulls()));
  tpu::hlo::writeStableHlo(*module, llvm::nulls());
  return 0;
}
