// What the fuzz targets of the readers check: a program that was read and verifies can be written, as a
// document that reads again and as StableHLO.
#pragma once
#include "tpu/hlo/document.h"
#include "tpu/hlo/stablehlo.h"
#include "tpu/hlo/verify.h"
#include "tpu/testing/fuzz.h"

namespace tpu::frontend {

inline void checkRead(llvm::Expected<hlo::Module> read) {
  const hlo::Module* module = testing::orDropError(read);
  if (!module) return;
  if (llvm::Error e = hlo::verify(*module)) {
    takeDiagnostics(std::move(e));
    return;
  }
  std::string document;
  llvm::raw_string_ostream os(document);
  llvm::cantFail(hlo::writeDocument(*module, os));
  auto again = hlo::readDocument(document, "written");
  testing::mustSucceed(again.takeError(), "a written document reads");
  hlo::writeStableHlo(*module, llvm::nulls());
}

}  // namespace tpu::frontend
