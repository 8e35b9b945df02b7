// Ops that move elements: boxes copied by DMA. A large transpose goes through the cross-lane unit.
#include <algorithm>

#include "lowering.h"

namespace tpu::lower {

using hlo::AttrKey;
using HloOp = hlo::Opcode;

namespace {

// Below this many elements a transpose by single words costs less than a kernel.
constexpr int64_t kSmallTranspose = 4096;

int64_t product(llvm::ArrayRef<int64_t> d) {
  int64_t n = 1;
  for (int64_t x : d) n *= x;
  return n;
}

llvm::SmallVector<int, 6> identity(size_t rank) {
  llvm::SmallVector<int, 6> out;
  for (size_t i = 0; i < rank; ++i) out.push_back(static_cast<int>(i));
  return out;
}

}  // namespace

llvm::Error Lowering::transposeInto(int32_t src, llvm::ArrayRef<int64_t> src_dims, llvm::ArrayRef<int64_t> perm, int32_t dst) {
  size_t rank = perm.size();
  Dims out_dims;
  for (int64_t d : perm) out_dims.push_back(src_dims[d]);
  ElementType type = out_.buffers[src].element;
  bool moves_minor = perm.back() != static_cast<int64_t>(rank) - 1;
  if (!moves_minor || product(out_dims) <= kSmallTranspose) {
    CopySide from, to;
    from.buffer = src;
    from.dims.assign(src_dims.begin(), src_dims.end());
    from.iter.assign(rank, -1);
    to.buffer = dst;
    to.dims = out_dims;
    to.iter = identity(rank);
    for (size_t i = 0; i < rank; ++i) from.iter[perm[i]] = static_cast<int>(i);
    return copyBox(out_dims, from, to, "");
  }
  // [others..., d, c] -> [others..., c, d]: c the minor dimension before, d the one after.
  int64_t c = static_cast<int64_t>(rank) - 1, d = perm.back();
  llvm::SmallVector<int64_t, 6> before;
  for (int64_t p : perm)
    if (p != c && p != d) before.push_back(p);
  TransposeSpec spec;
  spec.type = type;
  spec.batch = 1;
  for (int64_t p : before) spec.batch *= src_dims[p];
  spec.rows = src_dims[d];
  spec.cols = src_dims[c];
  llvm::SmallVector<int64_t, 6> after(before);
  before.append({d, c});
  after.append({c, d});
  int32_t from = src;
  auto dimsBy = [&](llvm::ArrayRef<int64_t> order) {
    Dims x;
    for (int64_t p : order) x.push_back(src_dims[p]);
    return x;
  };
  if (!std::is_sorted(before.begin(), before.end())) {
    from = tempBuffer(type, dimsBy(before));
    if (auto err = transposeInto(src, src_dims, before, from)) return err;
  }
  bool last = llvm::ArrayRef<int64_t>(after) == perm;
  int32_t to = last ? dst : tempBuffer(type, dimsBy(after));
  auto kernel = kernelFor(spec, "transpose", &emitTranspose);
  if (!kernel) return kernel.takeError();
  callKernel(*kernel, {from, to}, {});
  if (last) return llvm::Error::success();
  llvm::SmallVector<int64_t, 6> place;  // perm expressed on the dims of `after`
  for (int64_t p : perm) place.push_back(std::find(after.begin(), after.end(), p) - after.begin());
  return transposeInto(to, dimsBy(after), place, dst);
}

llvm::Error Lowering::lowerTranspose(hlo::OpId id) {
  const hlo::Op& op = m_.op(id);
  auto src = form(op.operands[0]);
  if (!src) return src.takeError();
  llvm::ArrayRef<int64_t> dims = typeOf(op.results[0]).dims;
  int32_t out = resultBuffer(op.results[0], dims);
  if (auto err = transposeInto(*src, typeOf(op.operands[0]).dims, m_.getInts(id, AttrKey::permutation), out)) return err;
  addForm(op.results[0], out, dims);
  return llvm::Error::success();
}

llvm::Error Lowering::lowerSlice(hlo::OpId id) {
  const hlo::Op& op = m_.op(id);
  auto src = form(op.operands[0]);
  if (!src) return src.takeError();
  llvm::ArrayRef<int64_t> dims = typeOf(op.results[0]).dims, start = m_.getInts(id, AttrKey::start_indices), step = m_.getInts(id, AttrKey::strides);
  int32_t out = resultBuffer(op.results[0], dims);
  CopySide from, to;
  from.buffer = *src;
  from.dims.assign(typeOf(op.operands[0]).dims.begin(), typeOf(op.operands[0]).dims.end());
  from.start.assign(start.begin(), start.end());
  from.step.assign(step.begin(), step.end());
  from.iter = identity(dims.size());
  to.buffer = out;
  to.dims.assign(dims.begin(), dims.end());
  to.iter = from.iter;
  if (auto err = copyBox(dims, from, to, locOf(id))) return err;
  addForm(op.results[0], out, dims);
  return llvm::Error::success();
}

llvm::Error Lowering::lowerPad(hlo::OpId id) {
  const hlo::Op& op = m_.op(id);
  llvm::ArrayRef<int64_t> in = typeOf(op.operands[0]).dims, dims = typeOf(op.results[0]).dims;
  llvm::ArrayRef<int64_t> low = m_.getInts(id, AttrKey::edge_padding_low), interior = m_.getInts(id, AttrKey::interior_padding);
  ElementType type = typeOf(op.results[0]).element;
  int32_t out = resultBuffer(op.results[0], dims);
  LoopSpec fill;
  fill.shape.assign(dims.begin(), dims.end());
  ExprNode value;
  value.type = type;
  std::vector<int32_t> args;
  if (auto splat = splatBytes(op.operands[1])) {
    value.kind = ExprNode::kConstant;
    for (size_t i = 0; i < splat->size() && i < 8; ++i) value.bits |= static_cast<uint64_t>((*splat)[i]) << (8 * i);
  } else {
    value.kind = ExprNode::kInput;
    fill.inputs.push_back({type, {}, true});
    auto s = scalar(op.operands[1]);
    if (!s) return s.takeError();
    args.push_back(*s);
  }
  fill.nodes = {value};
  fill.outputs = {0};
  auto kernel = loopKernel(fill, "fill");
  if (!kernel) return kernel.takeError();
  args.push_back(out);
  callKernel(*kernel, args, {internLoc(locOf(id))});
  auto src = form(op.operands[0]);
  if (!src) return src.takeError();
  CopySide from, to;
  from.buffer = *src;
  from.dims.assign(in.begin(), in.end());
  to.buffer = out;
  to.dims = fill.shape;
  Dims counts;
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t step = interior[d] + 1, first = low[d] >= 0 ? 0 : (-low[d] + step - 1) / step;
    int64_t last = std::min(in[d] - 1, low[d] > dims[d] - 1 ? -1 : (dims[d] - 1 - low[d]) / step);
    from.start.push_back(first);
    to.start.push_back(low[d] + first * step);
    from.step.push_back(1);
    to.step.push_back(step);
    counts.push_back(std::max<int64_t>(0, last - first + 1));
  }
  from.iter = to.iter = identity(dims.size());
  if (auto err = copyBox(counts, from, to, locOf(id))) return err;
  addForm(op.results[0], out, dims);
  return llvm::Error::success();
}

llvm::Error Lowering::lowerConcatenate(hlo::OpId id) {
  const hlo::Op& op = m_.op(id);
  llvm::ArrayRef<int64_t> dims = typeOf(op.results[0]).dims;
  int64_t axis = m_.getInt(id, AttrKey::dimension), at = 0;
  int32_t out = resultBuffer(op.results[0], dims);
  // Parts that share a word with their neighbour are joined as 32-bit words and narrowed once.
  ElementType type = out_.buffers[out].element;
  int64_t p = isa::packingOf(type);
  bool wide = false;
  if (p > 1 && axis == static_cast<int64_t>(dims.size()) - 2)
    for (hlo::ValueId v : op.operands) wide |= typeOf(v).dims[axis] % p != 0;
  int32_t whole = wide ? tempBuffer(wideType(type), dims) : out;
  for (hlo::ValueId v : op.operands) {
    llvm::ArrayRef<int64_t> part = typeOf(v).dims;
    if (product(part) == 0) continue;
    auto src = form(v);
    if (!src) return src.takeError();
    CopySide from, to;
    from.buffer = *src;
    if (wide) {
      auto w = widen(*src, part);
      if (!w) return w.takeError();
      from.buffer = *w;
    }
    from.dims.assign(part.begin(), part.end());
    from.iter = identity(dims.size());
    to.buffer = whole;
    to.dims.assign(dims.begin(), dims.end());
    to.iter = from.iter;
    to.start.assign(dims.size(), 0);
    to.start[axis] = at;
    if (auto err = copyBox(part, from, to, locOf(id))) return err;
    at += part[axis];
  }
  if (wide)
    if (auto err = narrow(whole, out, dims)) return err;
  addForm(op.results[0], out, dims);
  return llvm::Error::success();
}

llvm::Error Lowering::lowerReverse(hlo::OpId id) {
  const hlo::Op& op = m_.op(id);
  auto src = form(op.operands[0]);
  if (!src) return src.takeError();
  llvm::ArrayRef<int64_t> dims = typeOf(op.results[0]).dims;
  int32_t out = resultBuffer(op.results[0], dims);
  CopySide from, to;
  from.buffer = *src;
  from.dims.assign(dims.begin(), dims.end());
  from.iter = identity(dims.size());
  from.start.assign(dims.size(), 0);
  from.step.assign(dims.size(), 1);
  to.buffer = out;
  to.dims = from.dims;
  to.iter = from.iter;
  for (int64_t d : m_.getInts(id, AttrKey::dimensions)) {
    from.start[d] = dims[d] - 1;
    from.step[d] = -1;
  }
  if (auto err = copyBox(dims, from, to, locOf(id))) return err;
  addForm(op.results[0], out, dims);
  return llvm::Error::success();
}

// Copies between a box at run-time starts inside `array` and the whole of `box`. Where the array's address is not linear
// along a moving dimension the copy goes through a linear image of the array.
llvm::Error Lowering::dynamicBox(hlo::OpId id, int32_t array, llvm::ArrayRef<int64_t> dims, int32_t box, llvm::ArrayRef<int64_t> box_dims,
                                 llvm::ArrayRef<hlo::ValueId> starts, bool write) {
  ElementType type = out_.buffers[array].element;
  size_t rank = dims.size();
  bool packed = isa::packingOf(type) > 1, direct = true;
  std::vector<AxisAddress> axes = axisAddresses(out_.buffers[array].layout, dims);
  for (size_t d = 0; d < rank; ++d)
    if (dims[d] != box_dims[d]) direct &= axes[d].tile == INT64_MAX && !(packed && d + 2 >= rank);
  if (!direct && packed) {
    auto wide_array = widen(array, dims);
    if (!wide_array) return wide_array.takeError();
    int32_t wide_box = tempBuffer(wideType(type), box_dims);
    if (write)
      if (auto err = convertBuffer(box, wide_box, box_dims)) return err;
    if (auto err = dynamicBox(id, *wide_array, dims, wide_box, box_dims, starts, write)) return err;
    return write ? narrow(*wide_array, array, dims) : narrow(wide_box, box, box_dims);
  }
  CopySide whole, part;
  part.buffer = box;
  part.dims.assign(box_dims.begin(), box_dims.end());
  whole.buffer = array;
  whole.dims.assign(dims.begin(), dims.end());
  whole.iter = part.iter = identity(rank);
  int32_t linear = -1;
  if (!direct) {
    linear = tempBuffer(type, dims, /*dense=*/true);
    CopySide image = whole;
    image.buffer = linear;
    if (auto err = copyBox(dims, whole, image, locOf(id))) return err;
    whole.buffer = linear;
    axes = axisAddresses(out_.buffers[linear].layout, dims);
  }
  if (packed)  // leading dims only: their strides count word rows, as layoutBytes does
    axes = axisAddresses(isa::Layout{false, static_cast<int>(out_.buffers[array].layout.tile_rows / isa::packingOf(type)), 1}, [&] {
      Dims d(dims.begin(), dims.end());
      if (rank >= 2) d[rank - 2] = (d[rank - 2] + isa::packingOf(type) - 1) / isa::packingOf(type);
      return d;
    }());
  llvm::Error err = llvm::Error::success();
  for (size_t d = 0; d < rank && !err; ++d) {
    if (dims[d] == box_dims[d]) continue;
    llo::S start = clampIndex(starts[d], dims[d] - box_dims[d], err);
    whole.regs.push_back(b_.s(isa::Opcode::smul, {start, axes[d].in_stride}).id);
  }
  if (err) return err;
  err = write ? copyBox(box_dims, part, whole, locOf(id)) : copyBox(box_dims, whole, part, locOf(id));
  if (err || !write || linear < 0) return err;
  CopySide image = whole;
  image.regs.clear();
  CopySide back = image;
  back.buffer = array;
  return copyBox(dims, image, back, locOf(id));
}

llvm::Error Lowering::lowerDynamicSlice(hlo::OpId id) {
  const hlo::Op& op = m_.op(id);
  auto src = form(op.operands[0]);
  if (!src) return src.takeError();
  llvm::ArrayRef<int64_t> dims = typeOf(op.results[0]).dims;
  int32_t out = resultBuffer(op.results[0], dims);
  if (auto err = dynamicBox(id, *src, typeOf(op.operands[0]).dims, out, dims, llvm::ArrayRef<hlo::ValueId>(op.operands).drop_front(1), false)) return err;
  addForm(op.results[0], out, dims);
  return llvm::Error::success();
}

// True where the operand's buffer may become the result's: nobody else reads it and it lives in this very region.
bool Lowering::mayTake(hlo::ValueId v, hlo::RegionId region, int32_t buffer) const {
  hlo::ValueId r = root(v);
  const hlo::Value& value = m_.value(r);
  hlo::RegionId home = value.def.valid() ? m_.op(value.def).parent : value.region;
  return uses_[r.v] == 1 && home == region && out_.buffers[buffer].role == llo::Role::kTemp;
}

llvm::Error Lowering::lowerDynamicUpdateSlice(hlo::OpId id) {
  const hlo::Op& op = m_.op(id);
  auto src = form(op.operands[0]);
  if (!src) return src.takeError();
  auto update = form(op.operands[1]);
  if (!update) return update.takeError();
  llvm::ArrayRef<int64_t> dims = typeOf(op.results[0]).dims;
  int32_t out = *src;
  if (!mayTake(op.operands[0], op.parent, *src) || result_of_[root(op.results[0]).v] >= 0) {
    out = resultBuffer(op.results[0], dims);
    flatCopy(*src, out, out_.buffers[out].bytes);
  }
  if (auto err = dynamicBox(id, out, dims, *update, typeOf(op.operands[1]).dims, llvm::ArrayRef<hlo::ValueId>(op.operands).drop_front(2), true)) return err;
  addForm(op.results[0], out, dims);
  return llvm::Error::success();
}

}  // namespace tpu::lower
