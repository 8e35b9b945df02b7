// The sweep: every region is rebuilt in order, manual regions dissolve into their surroundings, values keep
// their ids and get per-device types.
#include "localise.h"

#include "flow.h"
#include "tpu/sharding/text.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::RegionId;
using hlo::ShardingId;
using hlo::ValueId;
using sharding::Axes;
using sharding::AxesRef;

Localiser::Localiser(hlo::Module& m, Context& ctx)
    : m_(m), ctx_(ctx), mesh_(ctx.meshOf(m)), b_(m, m.func(m.entry).body) {
  global_.reserve(m.numValues());
  for (uint32_t v = 0; v < m.numValues(); ++v) global_.push_back(m.value(ValueId(v)).type);
  why_of_.assign(m.numOps(), ~0u);
  for (uint32_t i = 0; i < m.whys.size(); ++i) why_of_[m.whys[i].op.v] = i;
}

llvm::Error Localiser::run() {
  RegionId body = m_.func(m_.entry).body;
  localisePorts();
  if (llvm::Error e = region(body)) return e;
  std::vector<OpId>& ops = m_.region(body).ops;
  ops.insert(ops.begin(), prologue_.begin(), prologue_.end());
  m_.whys = std::move(whys_);
  m_.stage = hlo::Stage::kSpmd;
  m_.num_partitions = mesh_.numDevices();
  return llvm::Error::success();
}

void Localiser::localisePorts() {
  hlo::Func& f = m_.funcs[m_.entry.v];
  const std::vector<ValueId> args = m_.region(f.body).args;
  for (size_t i = 0; i < args.size(); ++i) {
    f.arg_ports[i].global_type = m_.value(args[i]).type;
    f.arg_ports[i].sharding = m_.value(args[i]).sharding;
  }
  auto localBytes = [&](hlo::TypeId type, ShardingId sharding) {
    const hlo::Type& t = m_.type(type);
    int64_t n = elementBits(t.element);
    for (int64_t d : localDims(t.dims, layoutOf(m_, sharding, t.rank()))) n *= d;
    return n;
  };
  for (size_t i = 0; i < args.size(); ++i) {
    int alias = f.arg_ports[i].alias;
    if (alias < 0 || alias >= static_cast<int>(f.result_types.size())) continue;
    int64_t in = localBytes(f.arg_ports[i].global_type, f.arg_ports[i].sharding),
            out = localBytes(f.result_types[alias], f.result_ports[alias].sharding);
    if (in == out) continue;
    f.arg_ports[i].alias = -1;
    if (!ctx_.sink) continue;
    ctx_.sink->warn(Code::kDroppedAlias, m_.loc(m_.value(args[i]).loc),
                    "argument " + llvm::Twine(i) + " is donated to result " + llvm::Twine(alias) +
                        ", but a device holds " + llvm::Twine((in + 7) / 8) + " bytes of the one and " +
                        llvm::Twine((out + 7) / 8) + " of the other");
  }
  for (size_t i = 0; i < f.result_types.size(); ++i) {
    f.result_ports[i].global_type = f.result_types[i];
    const hlo::Type global = m_.type(f.result_types[i]);
    if (global.kind != hlo::TypeKind::kTensor) continue;
    hlo::Type local = global;
    local.dims = localDims(global.dims, layoutOf(m_, f.result_ports[i].sharding, global.rank()));
    f.result_types[i] = m_.internType(local);
  }
  localiseArgs(f.body);
}

hlo::TypeId Localiser::localTypeId(ValueId v) {
  const hlo::Value& value = m_.value(v);
  if (!value.sharding) return global_[v.v];
  hlo::Type t = globalType(v);
  if (t.kind != hlo::TypeKind::kTensor) return global_[v.v];
  t.dims = localDims(t.dims, layoutOf(m_, value.sharding, t.rank()));
  return m_.internType(t);
}

void Localiser::localiseArgs(RegionId r) {
  for (ValueId v : m_.region(r).args) setLocal(v);
}

void Localiser::replace(ValueId from, ValueId to) {
  if (map_.size() <= from.v) map_.resize(std::max<size_t>(from.v + 1, global_.size()));
  map_[from.v] = to;
}

void Localiser::mapOperands(OpId id) {
  for (ValueId& v : m_.op(id).operands) v = current(v);
}

void Localiser::keep(OpId id) {
  mapOperands(id);
  for (ValueId v : m_.op(id).results) setLocal(v);
  m_.op(id).parent = at_;
  list_->push_back(id);
}

void Localiser::finish(OpId id, size_t result, ValueId v) {
  ValueId old = m_.op(id).results[result];
  m_.value(v).sharding = m_.value(old).sharding;
  if (!m_.value(v).name) m_.value(v).name = m_.value(old).name;
  replace(old, v);
}

// ---------------------------------------------------------------- device arithmetic

ValueId Localiser::coordinate(AxesRef axes) {
  std::vector<int64_t> key;
  for (const sharding::AxisRef& a : axes) key.insert(key.end(), {a.axis, a.pre, a.size});
  auto it = coordinates_.find(key);
  if (it != coordinates_.end()) return it->second;
  hlo::Builder p(m_, m_.func(m_.entry).body, m_.func(m_.entry).loc);
  p.into(m_.func(m_.entry).body, &prologue_);
  ValueId id;
  if (auto pid = coordinates_.find({}); pid != coordinates_.end()) {
    id = pid->second;
  } else {
    id = coordinates_[{}] = p.partitionId();
  }
  auto u32 = [&](int64_t v) { return p.scalarInt(ElementType::kU32, v); };
  ValueId index;
  for (size_t i = 0; i < axes.size();) {
    // Neighbouring axes of the mesh are one coordinate.
    size_t j = i + 1;
    int64_t size = axes[i].size;
    while (j < axes.size() &&
           sharding::stride(mesh_, axes[j - 1]) == sharding::stride(mesh_, axes[j]) * axes[j].size)
      size *= axes[j++].size;
    int64_t stride = sharding::stride(mesh_, axes[j - 1]);
    ValueId c = stride == 1 ? id : p.divide(id, u32(stride));
    if (size * stride != mesh_.numDevices()) c = p.remainder(c, u32(size));
    index = index ? p.add(p.multiply(index, u32(size)), c) : c;
    i = j;
  }
  return coordinates_[key] = p.convert(index, ElementType::kS32);
}

ValueId Localiser::affine(AxesRef axes, int64_t scale, int64_t offset) {
  if (axes.empty() || scale == 0) return s32(offset);
  ValueId v = coordinate(axes);
  if (scale != 1) v = b_.multiply(v, s32(scale));
  return offset == 0 ? v : b_.add(v, s32(offset));
}

ValueId Localiser::inRange(llvm::ArrayRef<int64_t> dims, int64_t dim, ValueId offset, int64_t from,
                           int64_t to) {
  hlo::TypeId type = m_.tensorType(ElementType::kS32, dims);
  ValueId index = b_.add(b_.iota(type, dim), b_.broadcastScalar(offset, dims));
  ValueId in;
  if (to < INT32_MAX) in = b_.compare(hlo::Comparison::kLt, index, b_.splatInt(type, to));
  if (from > INT32_MIN) {
    ValueId above = b_.compare(hlo::Comparison::kGe, index, b_.splatInt(type, from));
    in = in ? b_.binary(Opcode::and_, in, above) : above;
  }
  return in;
}

ValueId Localiser::maskPadding(ValueId v, ValueId local, int64_t dim, ValueId fill) {
  Layout l = layout(v);
  int64_t n = globalType(v).dims[dim], k = sharding::product(l.dims[dim]);
  if (n % k == 0) return local;
  int64_t c = sharding::shardSize(n, k);
  hlo::Dims dims = m_.typeOf(local).dims;
  needs(local, dim, dims[dim]);
  ValueId valid = inRange(dims, dim, affine(l.dims[dim], c, 0), INT32_MIN, n);
  return b_.select(valid, local, b_.broadcastScalar(fill, dims));
}

ValueId Localiser::padDim(ValueId v, int64_t dim, int64_t low, int64_t high, ValueId fill) {
  if (low == 0 && high == 0) return v;
  int64_t rank = m_.typeOf(v).rank();
  llvm::SmallVector<int64_t, 6> lo(rank, 0), hi(rank, 0), mid(rank, 0);
  lo[dim] = low;
  hi[dim] = high;
  return b_.pad(v, fill, lo, hi, mid);
}

ValueId Localiser::padTo(ValueId v, int64_t dim, int64_t size) {
  int64_t have = m_.typeOf(v).dims[dim];
  if (have == size) return v;
  if (have > size) return b_.sliceDim(v, dim, 0, size);
  return padDim(v, dim, 0, size - have, b_.scalarInt(m_.typeOf(v).element, 0));
}

// ---------------------------------------------------------------- regions

llvm::Error Localiser::region(RegionId r) {
  std::vector<OpId> before = std::move(m_.region(r).ops);
  std::vector<OpId> after;
  after.reserve(before.size() * 2);
  RegionId outer = at_;
  std::vector<OpId>* outer_list = list_;
  at_ = r;
  list_ = &after;
  for (OpId id : before) {
    b_.into(at_, list_);
    b_.loc = m_.op(id).loc;
    const size_t first = after.size();
    const int64_t source = ctx_.held ? largestOperand(id) : 0;
    need_ = 0;
    reported_ = false;
    if (llvm::Error e = op(id)) return e;
    if (ctx_.held && !hasPartitionedRegions(m_.op(id).opcode)) measure(id, first, source);
  }
  m_.region(r).ops = std::move(after);
  at_ = outer;
  list_ = outer_list;
  if (list_) b_.into(at_, list_);
  return llvm::Error::success();
}

int64_t Localiser::largestOperand(OpId id) const {
  int64_t bits = 0;
  for (ValueId v : m_.op(id).operands) bits = std::max(bits, bitsOf(m_.typeOf(current(v))));
  return bits;
}

void Localiser::needs(ValueId v, int64_t dim, int64_t elements) {
  const hlo::Type& t = m_.typeOf(v);
  // Masks over it are of 32-bit numbers.
  need_ = std::max(need_, std::max<int64_t>(32, elementBits(t.element)) * (t.numElements() / std::max<int64_t>(1, t.dims[dim])) * elements);
}

void Localiser::measure(OpId id, size_t first, int64_t source) {
  Held held;
  held.op = id;
  held.loc = m_.loc(m_.op(id).loc).str();
  held.opcode = held.largest_op = m_.op(id).opcode;
  held.source = source;
  held.need = need_;
  held.reported = reported_;
  for (ValueId v : m_.op(id).results) held.destination = std::max(held.destination, bitsOf(m_.typeOf(current(v))));
  for (OpId made : llvm::ArrayRef<OpId>(*list_).drop_front(first)) {
    for (ValueId v : m_.op(made).results) {
      if (bitsOf(m_.typeOf(v)) <= held.largest) continue;
      held.largest = bitsOf(m_.typeOf(v));
      held.largest_op = m_.op(made).opcode;
    }
  }
  ctx_.held->push_back(std::move(held));
}

llvm::Error Localiser::controlOp(OpId id) {
  const llvm::SmallVector<RegionId, 2> regions(m_.op(id).regions.begin(), m_.op(id).regions.end());
  for (RegionId r : regions) {
    localiseArgs(r);
    if (llvm::Error e = region(r)) return e;
  }
  keep(id);
  return llvm::Error::success();
}

llvm::Error Localiser::manualOp(OpId id) {
  // Body types are local over the manual axes already: the operands are the arguments.
  RegionId body = m_.op(id).regions[0];
  for (size_t i = 0; i < m_.region(body).args.size(); ++i) {
    ValueId arg = m_.region(body).args[i], operand = current(m_.op(id).operands[i]);
    replace(arg, operand);
    hlo::TypeId expect = localTypeId(arg);
    if (m_.value(operand).type != expect) {
      return fail(Code::kManualShape, m_.loc(m_.op(id).loc),
                  "argument " + llvm::Twine(i) + " of the manual region is not the shard of its operand");
    }
  }
  const std::vector<OpId> ops = m_.region(body).ops;
  for (OpId inner : ops) {
    b_.loc = m_.op(inner).loc;
    if (m_.op(inner).opcode != Opcode::return_) {
      if (llvm::Error e = op(inner)) return e;
      continue;
    }
    for (size_t i = 0; i < m_.op(inner).operands.size(); ++i) {
      ValueId result = m_.op(id).results[i], v = current(m_.op(inner).operands[i]);
      if (m_.value(v).type != localTypeId(result)) {
        return fail(
            Code::kManualShape, m_.loc(m_.op(id).loc),
            "result " + llvm::Twine(i) + " of the manual region is not the shard of the outer result");
      }
      replace(result, v);
    }
  }
  return llvm::Error::success();
}

llvm::Error Localiser::op(OpId id) {
  reason_ = id;
  switch (m_.op(id).opcode) {
    case Opcode::while_:
    case Opcode::if_:
    case Opcode::case_:
      return controlOp(id);
    case Opcode::sdy_manual_computation:
      return manualOp(id);
    case Opcode::sdy_reshard:
      return reshardOp(id);
    case Opcode::constant:
    case Opcode::chlo_constant:
      return constantOp(id);
    case Opcode::iota:
      return iotaOp(id);
    case Opcode::dot_general:
    case Opcode::dot:
      return dotOp(id);
    case Opcode::convolution:
      return convolutionOp(id);
    case Opcode::reduce:
      return reduceOp(id);
    case Opcode::chlo_top_k:
      return topKOp(id);
    case Opcode::reduce_window:
      return reduceWindowOp(id);
    case Opcode::select_and_scatter:
      return selectAndScatterOp(id);
    case Opcode::sort:
      return sortOp(id);
    case Opcode::gather:
      return gatherOp(id);
    case Opcode::scatter:
      return scatterOp(id);
    case Opcode::slice:
      return sliceOp(id);
    case Opcode::pad:
      return padOp(id);
    case Opcode::concatenate:
      return concatenateOp(id);
    case Opcode::reverse:
      return reverseOp(id);
    case Opcode::dynamic_slice:
      return dynamicSliceOp(id);
    case Opcode::dynamic_update_slice:
      return dynamicUpdateSliceOp(id);
    case Opcode::all_gather:
    case Opcode::all_reduce:
    case Opcode::all_to_all:
    case Opcode::collective_permute:
    case Opcode::collective_broadcast:
    case Opcode::cross_replica_sum:
    case Opcode::reduce_scatter:
      return userCollective(id);
    case Opcode::custom_call:
      m_.removeAttr(id, AttrKey::sharding_rule);  // it spoke of whole sizes
      keep(id);
      return llvm::Error::success();
    case Opcode::rng_bit_generator:
      return randomBitsOp(id);
    default:
      keep(id);
      return llvm::Error::success();
  }
}

llvm::Error localise(hlo::Module& m, Context& ctx) { return Localiser(m, ctx).run(); }

}  // namespace tpu::partition
