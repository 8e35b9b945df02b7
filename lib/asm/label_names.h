// Names for branch targets in text: those of the program, and .L<bundle> for the rest.
#pragma once
#include <string>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringRef.h"
#include "tpu/isa/program.h"

namespace tpu::assembly {

class LabelNames {
 public:
  explicit LabelNames(const isa::Program& program);
  /// Appends the instruction, its branch target by name.
  void print(const isa::Instruction& insn, std::string& out) const;
  /// Whether text must define .L<bundle> before this bundle.
  bool needsLocal(uint32_t bundle) const { return local_.count(bundle) != 0; }

 private:
  const isa::Program& program_;
  llvm::DenseMap<uint32_t, uint32_t> named_;  // bundle -> first row of label_at
  llvm::DenseMap<uint32_t, bool> local_;      // branch targets without a name
};

/// The bundle of ".L12".
std::optional<uint32_t> localLabelBundle(llvm::StringRef name);

}  // namespace tpu::assembly
