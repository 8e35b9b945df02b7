// Copies between buffers by DMA, and the element-type changes that make them possible for packed types.
#include <algorithm>
#include <cassert>
#include <functional>

#include "lowering.h"

namespace tpu::lower {

namespace {

// Most nests one copy may unroll to before the next level becomes a loop of the driver: none needed so far, DMA levels
// beyond three become loops below.
constexpr size_t kDmaLevels = 3;

int64_t product(llvm::ArrayRef<int64_t> d) {
  int64_t n = 1;
  for (int64_t x : d) n *= x;
  return n;
}

Dims withoutOnes(llvm::ArrayRef<int64_t> d) {
  Dims out;
  for (int64_t x : d)
    if (x != 1) out.push_back(x);
  return out;
}

}  // namespace

ElementType Lowering::wideType(ElementType type) const {
  switch (type) {
    case ElementType::kBF16: return ElementType::kF32;
    case ElementType::kS8: return ElementType::kS32;
    default: return ElementType::kU32;
  }
}

llvm::Error Lowering::convertBuffer(int32_t src, int32_t dst, llvm::ArrayRef<int64_t> dims) {
  if (product(dims) == 0) return llvm::Error::success();
  LoopSpec spec;
  spec.shape.assign(dims.begin(), dims.end());
  ElementType from = out_.buffers[src].element, to = out_.buffers[dst].element;
  spec.inputs.push_back({from, spec.shape, false});
  ExprNode in;
  in.kind = ExprNode::kInput;
  in.type = from;
  ExprNode op;
  op.op = hlo::Opcode::convert;
  op.type = to;
  op.args = {0};
  spec.nodes = {in, op};
  spec.outputs = {1};
  auto k = loopKernel(spec, "convert");
  if (!k) return k.takeError();
  callKernel(*k, {src, dst}, {});
  return llvm::Error::success();
}

llvm::Expected<int32_t> Lowering::widen(int32_t buffer, llvm::ArrayRef<int64_t> dims) {
  int32_t wide = tempBuffer(wideType(out_.buffers[buffer].element), dims);
  if (auto err = convertBuffer(buffer, wide, dims)) return err;
  return wide;
}

llvm::Error Lowering::narrow(int32_t wide, int32_t dst, llvm::ArrayRef<int64_t> dims) { return convertBuffer(wide, dst, dims); }

llvm::Error Lowering::fillBuffer(int32_t dst, llvm::ArrayRef<int64_t> dims, uint64_t bits) {
  LoopSpec spec;
  spec.shape.assign(dims.begin(), dims.end());
  ExprNode c;
  c.kind = ExprNode::kConstant;
  c.type = out_.buffers[dst].element;
  c.bits = bits;
  spec.nodes = {c};
  spec.outputs = {0};
  auto k = loopKernel(spec, "fill");
  if (!k) return k.takeError();
  callKernel(*k, {dst}, {});
  return llvm::Error::success();
}

void Lowering::flatCopy(int32_t src, int32_t dst, int64_t bytes, int64_t src_offset, int64_t dst_offset) {
  for (int64_t at = 0; at < bytes; at += kMostRun) {
    const int64_t part = std::min(kMostRun, bytes - at);
    startCopy(src, dst, part, src_offset + at, dst_offset + at);
    b_.semWait(local_sem_, {false, 0, part});
  }
}

void Lowering::startCopy(int32_t src, int32_t dst, int64_t bytes, int64_t src_offset, int64_t dst_offset) {
  llo::Dma d;
  d.src.index = src;
  d.dst.index = dst;
  d.src.offset = src_offset;
  d.dst.offset = dst_offset;
  d.run = bytes;
  d.dst_sem = local_sem_;
  b_.dma(std::move(d));
}

void Lowering::emitNests(const std::vector<CopyNest>& nests, const CopySide& src, const CopySide& dst) {
  // Every nest is started before the first wait; the queues hold them.
  for (CopyNest nest : nests) {
    auto& l = nest.levels;
    std::stable_sort(l.begin(), l.end(), [](const CopyLevel& a, const CopyLevel& b) { return a.count < b.count; });
    size_t loops = l.size() > kDmaLevels ? l.size() - kDmaLevels : 0;  // the smallest counts
    llvm::SmallVector<int32_t, 2> src_regs(src.regs), dst_regs(dst.regs);
    std::function<void(size_t)> nestLoops = [&](size_t depth) {
      if (depth < loops) {
        b_.loop(l[depth].count, [&](llo::S i) {
          llo::S so = b_.s(isa::Opcode::smul, {i, l[depth].src_stride});
          llo::S to = b_.s(isa::Opcode::smul, {i, l[depth].dst_stride});
          src_regs.push_back(so.id);
          dst_regs.push_back(to.id);
          nestLoops(depth + 1);
          src_regs.pop_back();
          dst_regs.pop_back();
        });
        return;
      }
      llo::Dma d;
      d.src.index = src.buffer;
      d.src.offset = nest.src_offset;
      d.src.regs = src_regs;
      d.dst.index = dst.buffer;
      d.dst.offset = nest.dst_offset;
      d.dst.regs = dst_regs;
      d.run = nest.run;
      for (size_t k = loops; k < l.size(); ++k) d.dims[k - loops] = {l[k].count, l[k].src_stride, l[k].dst_stride};
      d.dst_sem = local_sem_;
      b_.dma(std::move(d));
    };
    nestLoops(0);
  }
  int64_t total = 0;
  for (const CopyNest& n : nests) total += n.totalBytes();
  constexpr int64_t kMostPerWait = int64_t{1} << 30;
  for (; total > 0; total -= kMostPerWait) b_.semWait(local_sem_, {false, 0, std::min(total, kMostPerWait)});
}

// Word rows of a packed array may be moved whole when rows stay in their place inside the word on both sides.
bool Lowering::packedCopyAllowed(llvm::ArrayRef<int64_t> counts, const CopySide& src, const CopySide& dst) const {
  int64_t p = isa::packingOf(out_.buffers[src.buffer].element);
  if (src.dims.size() < 2 || dst.dims.size() < 2) return src.dims.size() == dst.dims.size() && src.dims.size() == 1;
  size_t sr = src.dims.size() - 2, dr = dst.dims.size() - 2;
  if (src.iter[sr] != dst.iter[dr]) return false;
  int64_t s0 = src.start[sr], d0 = dst.start[dr], it = src.iter[sr];
  if (it < 0) return s0 % p == 0 && d0 % p == 0 && src.dims[sr] == 1 && dst.dims[dr] == 1;
  if (src.step[sr] != 1 || dst.step[dr] != 1 || s0 % p != 0 || d0 % p != 0) return false;
  return counts[it] % p == 0 || d0 + counts[it] == dst.dims[dr];
}

llvm::Error Lowering::copyBox(llvm::ArrayRef<int64_t> counts, const CopySide& src_in, const CopySide& dst_in, llvm::StringRef loc) {
  CopySide src = src_in, dst = dst_in;
  for (CopySide* s : {&src, &dst}) {
    s->start.resize(s->dims.size(), 0);
    s->step.resize(s->dims.size(), 1);
  }
  for (int64_t c : counts)
    if (c == 0) return llvm::Error::success();
  ElementType type = out_.buffers[src.buffer].element;
  int64_t p = isa::packingOf(type);
  bool words = p > 1;
  if (words && !packedCopyAllowed(counts, src, dst)) {
    // Element by element as 32-bit words: widen both, copy, narrow back. The destination's other elements are kept.
    auto wide_src = widen(src.buffer, src.dims);
    if (!wide_src) return wide_src.takeError();
    bool whole = product(counts) == product(dst.dims);
    int32_t packed_dst = dst.buffer;
    int32_t wide_dst;
    if (whole) wide_dst = tempBuffer(wideType(type), dst.dims);
    else {
      auto w = widen(dst.buffer, dst.dims);
      if (!w) return w.takeError();
      wide_dst = *w;
    }
    src.buffer = *wide_src;
    dst.buffer = wide_dst;
    if (auto err = copyBox(counts, src, dst, loc)) return err;
    return narrow(wide_dst, packed_dst, dst.dims);
  }
  Dims n(counts.begin(), counts.end());
  auto axesOf = [&](CopySide& s) {
    isa::Layout layout = out_.buffers[s.buffer].layout;
    Dims dims = s.dims;
    if (words) {
      if (dims.size() >= 2) {
        size_t r = dims.size() - 2;
        dims[r] = (dims[r] + p - 1) / p;
        s.start[r] /= p;
      }
      layout.tile_rows = static_cast<int>(layout.tile_rows / p);
      layout.packing = 1;
    }
    return axisAddresses(layout, dims);
  };
  if (words && src.dims.size() >= 2)
    if (int it = src.iter[src.dims.size() - 2]; it >= 0) n[it] = (n[it] + p - 1) / p;
  std::vector<AxisAddress> sa = axesOf(src), da = axesOf(dst);
  std::vector<IterDim> dims(n.size());
  for (size_t i = 0; i < n.size(); ++i) {
    dims[i].count = n[i];
    dims[i].src.in_stride = dims[i].dst.in_stride = 0;
  }
  int64_t src_fixed = 0, dst_fixed = 0;
  auto attach = [&](const CopySide& s, const std::vector<AxisAddress>& axes, bool is_src, int64_t& fixed) {
    for (size_t d = 0; d < s.dims.size(); ++d) {
      if (s.iter[d] < 0) {
        fixed += axes[d].at(s.start[d]);
        continue;
      }
      IterDim& it = dims[s.iter[d]];
      (is_src ? it.src : it.dst) = axes[d];
      (is_src ? it.src_start : it.dst_start) = s.start[d];
      (is_src ? it.src_step : it.dst_step) = s.step[d];
    }
  };
  attach(src, sa, true, src_fixed);
  attach(dst, da, false, dst_fixed);
  std::vector<CopyNest> nests = planCopy(dims);
  for (CopyNest& nest : nests) {
    nest.src_offset += src_fixed;
    nest.dst_offset += dst_fixed;
  }
  emitNests(nests, src, dst);
  return llvm::Error::success();
}

llvm::Error Lowering::relayout(int32_t src, llvm::ArrayRef<int64_t> src_dims, int32_t dst, llvm::ArrayRef<int64_t> dst_dims) {
  ElementType type = out_.buffers[src].element;
  if (product(dst_dims) == 0) return llvm::Error::success();
  if (sameBytes(type, src_dims, dst_dims) && !out_.buffers[src].layout.dense && !out_.buffers[dst].layout.dense) {
    flatCopy(src, dst, out_.buffers[dst].bytes);
    return llvm::Error::success();
  }
  // Dims that differ by ones only: one pass over the common dims.
  auto side = [&](int32_t buffer, llvm::ArrayRef<int64_t> d) {
    CopySide s;
    s.buffer = buffer;
    s.dims.assign(d.begin(), d.end());
    int next = 0;
    for (int64_t x : d) s.iter.push_back(x == 1 ? -1 : next++);
    return s;
  };
  Dims common = withoutOnes(src_dims);
  if (common == withoutOnes(dst_dims)) return copyBox(common, side(src, src_dims), side(dst, dst_dims), "");
  if (isa::packingOf(type) > 1) {
    auto wide = widen(src, src_dims);
    if (!wide) return wide.takeError();
    int32_t wide_dst = tempBuffer(wideType(type), dst_dims);
    if (auto err = relayout(*wide, src_dims, wide_dst, dst_dims)) return err;
    return narrow(wide_dst, dst, dst_dims);
  }
  // Through the linear order of the elements.
  int32_t linear = tempBuffer(type, src_dims, /*dense=*/true);
  if (auto err = copyBox(common, side(src, src_dims), side(linear, src_dims), "")) return err;
  return copyBox(withoutOnes(dst_dims), side(linear, dst_dims), side(dst, dst_dims), "");
}

}  // namespace tpu::lower
