// The handed programs, where they are present.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>

#include "equality_test_util.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "tpu/frontend/frontend.h"
#include "tpu/support/files.h"

namespace tpu::partition {

inline std::filesystem::path corpus() {
  return std::filesystem::path(TPU_SOURCE_DIR) / ".." / "shared" / "corpus";
}
inline std::filesystem::path jaxCases() { return corpus() / "jax"; }

/// Says so where they are not there.
inline bool absent() {
  if (std::filesystem::exists(jaxCases())) return false;
  std::cout << "handed programs are absent: " << jaxCases() << "\n";
  return true;
}

/// Hands each JAX program, large ones too, to `visit` with its name; returns their number.
inline size_t forEachProgram(llvm::function_ref<void(const std::string& name, hlo::Module module)> visit) {
  size_t programs = 0;
  for (const auto& folder : {jaxCases(), jaxCases() / "large"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::filesystem::path path = entry.path() / "program.mlir";
      if (!std::filesystem::exists(path)) continue;
      auto input = readInput(path.string());
      Collected sink;
      auto m = input ? frontend::readProgram(input->bytes, "program.mlir", sink)
                     : llvm::Expected<hlo::Module>(input.takeError());
      if (!m) {
        ADD_FAILURE() << path << errorText(m.takeError());
        continue;
      }
      visit(entry.path().filename().string(), std::move(*m));
      ++programs;
    }
  }
  std::cout << programs << " programs\n";
  return programs;
}

}  // namespace tpu::partition
