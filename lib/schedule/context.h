// What all functions of a program share while they are being expanded: addresses of buffers, the SMEM map,
// descriptors, semaphores.
//
// SMEM from 0: identity words and the device table (isa/dma.h), the parameter area of calls, the saved link
// word, then module buffers, descriptors and spill slots in order of need.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "tpu/llo/llo.h"
#include "tpu/target/chip.h"

namespace tpu::schedule {

struct Context {
  Context(const llo::Module& m, const target::Chip& c) : module(m), chip(c) {}

  const llo::Module& module;
  const target::Chip& chip;
  std::vector<int64_t> address;  // bytes, by module buffer
  int64_t hbm_end = 0;           // high-water marks
  int64_t vmem_buffers_end = 0;  // module buffers; kernels use what lies above
  int64_t vmem_end = 0;
  int64_t smem_end = 0;
  int64_t params = 0;  // SMEM address of the parameter words
  int64_t link_word = 0;
  int32_t sems_used = 0;  // virtual ones first, then those of pipelines
  std::vector<isa::Constant> constants;
  std::vector<std::string> vmem_names;                   // by object: who lives there, for messages
  std::map<std::vector<uint32_t>, int64_t> descriptors;  // constant descriptors by content

  int linkRegister() const { return chip.scalar_regs - 1; }
  int64_t allocSmem(int64_t bytes) {
    const int64_t at = smem_end;
    smem_end += (bytes + 3) / 4 * 4;
    return at;
  }
  /// Where SMEM is short, all code shares one area for descriptors and writes each word of one before it is used: the
  /// first descriptor of the area is for single transfers, those behind it for the blocks of the running kernel. -1: each
  /// transfer has a descriptor of its own.
  int64_t shared_descriptors = -1;
  int64_t sharedDescriptor(int64_t index) const { return shared_descriptors + 4 * isa::kDmaWords * index; }
  /// An SMEM copy of a descriptor; one that is never patched is shared with equal ones.
  int64_t placeDescriptor(const std::vector<uint32_t>& words, bool patched);
  const std::string& locOf(uint32_t row) const { return module.locs[row < module.locs.size() ? row : 0]; }
};

/// Objects (mir.h) by kind.
inline int32_t objectOfBuffer(const Context& ctx, int buffer) { return buffer; }
inline int32_t objectOfBlock(const Context& ctx, int block) {
  return static_cast<int32_t>(ctx.module.buffers.size()) + block;
}
inline int32_t objectOfScratch(const Context& ctx, const llo::Kernel& kernel, int scratch) {
  return static_cast<int32_t>(ctx.module.buffers.size() + kernel.blocks.size()) + scratch;
}

}  // namespace tpu::schedule
