// Loads and stores: SMEM words, VMEM rows. Every access is checked for bounds, alignment and ownership by a
// transfer.
#include <algorithm>
#include <cstring>

#include "../chip.h"
#include "exec.h"
#include "flow.h"

namespace tpu::emulate {
namespace {

template <bool kStrict>
bool definedAddress(Core& c, const Op& op) {
  if constexpr (kStrict) {
    if (op.base != kNoReg && c.s_shadow[op.base]) {
      c.fail(op, tpu::Code::kEmuUndefined, "the address in s" + llvm::Twine(op.base) + " is undefined");
      return false;
    }
  }
  return true;
}

template <bool kStrict>
int64_t smemWord(Core& c, const Op& op, bool write) {
  if (!definedAddress<kStrict>(c, op)) return -1;
  const int64_t at = c.address(op);
  if (at % 4 != 0 || at < 0 || at / 4 >= static_cast<int64_t>(c.smem.size())) {
    c.fail(op, tpu::Code::kEmuBounds,
           "SMEM address " + llvm::Twine(at) + " of " + llvm::Twine(c.smem.size() * 4) + " bytes");
    return -1;
  }
  if (c.smem_transfers > 0 && !c.sim->mayAccess(c, op, isa::Space::kSmem, at, 4, write)) return -1;
  return at / 4;
}

// The first byte of rows [0, last] from the operand's address on, or -1.
template <bool kStrict>
int64_t vmemRows(Core& c, const Op& op, int64_t last) {
  if (!definedAddress<kStrict>(c, op)) return -1;
  const int64_t at = c.address(op);
  if (at < 0 || at % 512 != 0 || at + (last + 1) * 512 > c.vmem_bytes) {
    c.fail(op, tpu::Code::kEmuBounds,
           "VMEM address " + llvm::Twine(at) + ", rows up to " + llvm::Twine(at + (last + 1) * 512) + " of " +
               llvm::Twine(c.vmem_bytes) + " bytes" + (at % 512 ? ", not a multiple of 512" : ""));
    return -1;
  }
  return at;
}

uint64_t eight(const Lazy<uint8_t>& rows, int64_t row) {
  uint64_t x;
  std::memcpy(&x, &rows[static_cast<size_t>(row)], 8);
  return x;
}
bool mayRead(Core& c, const Op& op, int64_t at) {
  return eight(c.vmem_written_by_dma, at / 512) == 0 ||
         c.sim->mayAccess(c, op, isa::Space::kVmem, at, 4096, false);
}
bool mayWrite(Core& c, const Op& op, int64_t at) {
  const int64_t row = at / 512;
  return (eight(c.vmem_written_by_dma, row) | eight(c.vmem_read_by_dma, row)) == 0 ||
         c.sim->mayAccess(c, op, isa::Space::kVmem, at, 4096, true);
}
bool mayUseRow(Core& c, const Op& op, int64_t at, bool write) {
  const auto row = static_cast<size_t>(at / 512);
  if (c.vmem_written_by_dma[row] == 0 && (!write || c.vmem_read_by_dma[row] == 0)) return true;
  return c.sim->mayAccess(c, op, isa::Space::kVmem, at, 512, write);
}

template <bool kStrict>
bool definedMask(Core& c, const Op& op, int mask) {
  if constexpr (kStrict) {
    if (anyBit(c.v_shadow[mask].w)) {
      c.fail(op, tpu::Code::kEmuUndefined, "the mask is undefined");
      return false;
    }
  }
  return true;
}

uint32_t* words(uint8_t* bytes) { return reinterpret_cast<uint32_t*>(bytes); }

// Of a strided access: the first byte, or -1; all its rows may be used.
template <bool kStrict>
int64_t stridedRows(Core& c, const Op& op, bool write) {
  const int64_t stride = int64_t{op.small[0]};
  const int sublanes = op.small[1];
  int last = 7;
  while (last > 0 && !(sublanes >> last & 1)) --last;
  const int64_t at = vmemRows<kStrict>(c, op, last * stride);
  for (int s = 0; at >= 0 && s < 8; ++s)
    if (sublanes >> s & 1 && !mayUseRow(c, op, at + s * stride * 512, write)) return -1;
  return at;
}

void loadRows(const Op& op, uint32_t* to, const uint32_t* from) {
  if (op.small[1] != 0xff) std::fill_n(to, kVectorWords, 0);
  copyRows(to, 128, from, size_t{op.small[0]} * 128, op.small[1]);
}

// Sublanes picked by the mask immediate, one row each.
void storeRows(const Op& op, uint32_t* to, const uint32_t* from, const uint32_t* mask) {
  const size_t stride = size_t{op.small[0]} * 128;
  if (!mask) return copyRows(to, stride, from, 128, op.small[1]);
  for (size_t s = 0; s < 8; ++s)
    if (op.small[1] >> s & 1) mergeWords(to + s * stride, from + s * 128, mask + s * 128, 128);
}

template <bool kStrict>
void storeStrided(Core& c, const Op& op, const uint32_t* mask) {
  const int64_t at = stridedRows<kStrict>(c, op, true);
  if (at < 0) return;
  storeRows(op, words(c.vmem_data + at), c.v[op.a].w, mask);
  if constexpr (kStrict) storeRows(op, words(c.vmem_shadow.data() + at), c.v_shadow[op.a].w, mask);
}

}  // namespace

TPU_EXEC(sld) {
  const int64_t word = smemWord<kStrict>(c, op, false);
  if (word < 0) return;
  if constexpr (kStrict) c.s_shadow[op.d] = c.smem_shadow[word];
  c.s[op.d] = c.smem[word];
}
TPU_EXEC(sst) {
  const int64_t word = smemWord<kStrict>(c, op, true);
  if (word < 0) return;
  if constexpr (kStrict) c.smem_shadow[word] = c.s_shadow[op.a];
  c.smem[word] = c.s[op.a];
}

TPU_EXEC(vld) {
  const int64_t at = vmemRows<kStrict>(c, op, 7);
  if (at < 0 || !mayRead(c, op, at)) return;
  copyRegister(c.v[op.d].w, words(c.vmem_data + at));
  if constexpr (kStrict) copyRegister(c.v_shadow[op.d].w, words(c.vmem_shadow.data() + at));
}
TPU_EXEC(vld_strided) {
  const int64_t at = stridedRows<kStrict>(c, op, false);
  if (at < 0) return;
  loadRows(op, c.v[op.d].w, words(c.vmem_data + at));
  if constexpr (kStrict) loadRows(op, c.v_shadow[op.d].w, words(c.vmem_shadow.data() + at));
}
TPU_EXEC(vst) {
  const int64_t at = vmemRows<kStrict>(c, op, 7);
  if (at < 0 || !mayWrite(c, op, at)) return;
  copyRegister(words(c.vmem_data + at), c.v[op.a].w);
  if constexpr (kStrict) copyRegister(words(c.vmem_shadow.data() + at), c.v_shadow[op.a].w);
}
TPU_EXEC(vst_msk) {
  const int64_t at = vmemRows<kStrict>(c, op, 7);
  if (at < 0 || !mayWrite(c, op, at) || !definedMask<kStrict>(c, op, op.b)) return;
  mergeWords(words(c.vmem_data + at), c.v[op.a].w, c.v[op.b].w, kVectorWords);
  if constexpr (kStrict)
    mergeWords(words(c.vmem_shadow.data() + at), c.v_shadow[op.a].w, c.v[op.b].w, kVectorWords);
}
TPU_EXEC(vst_strided) { storeStrided<kStrict>(c, op, nullptr); }
TPU_EXEC(vst_strided_msk) {
  if (definedMask<kStrict>(c, op, op.b)) storeStrided<kStrict>(c, op, c.v[op.b].w);
}

}  // namespace tpu::emulate
