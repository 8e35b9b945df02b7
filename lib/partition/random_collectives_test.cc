// Steps of random programs: manual bodies whose collectives can be shared, added, cut, taken out of loops.
#include "random_program_test_util.h"
#include "tpu/sharding/axes.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::RegionId;
using hlo::ValueId;
using Ints = Generator::Ints;

ValueId Generator::manualCollective(Opcode opcode, ValueId v, const hlo::AxisRef& axis, int64_t dim) {
  Ints d = dims(v);
  if (opcode == Opcode::all_gather) d[dim] *= axis.size;
  OpId op = b_.create(opcode, {v}, {m_.tensorType(ElementType::kS32, d)});
  m_.setGroups(op, AttrKey::replica_groups, groupsOf(axis));
  m_.setInt(op, AttrKey::channel_id, 1);
  m_.setBool(op, AttrKey::use_global_device_ids, true);
  if (opcode == Opcode::all_gather) {
    m_.setInt(op, AttrKey::all_gather_dim, dim);
  } else {
    b_.combinerRegion(op, Opcode::add, ElementType::kS32);
  }
  return b_.result(op);
}

/// A sum of all elements on every element of v.
ValueId Generator::plusTotal(ValueId v, ValueId x) {
  Ints all;
  for (size_t i = 0; i < dims(x).size(); ++i) all.push_back(static_cast<int64_t>(i));
  return b_.add(v, b_.broadcastScalar(b_.reduce(x, scalar(0), all, Opcode::add), dims(v)));
}

/// `trips` times: acc = part(acc, carried), where carried never changes.
ValueId Generator::fixedLoop(ValueId start, ValueId carried, int64_t trips,
                             llvm::function_ref<ValueId(ValueId, ValueId)> part) {
  hlo::TypeId s32 = m_.tensorType(ElementType::kS32, {});
  OpId op = b_.create(Opcode::while_, {scalar(0), start, carried}, {s32, m_.value(start).type, m_.value(carried).type});
  RegionId outer = b_.region(), cond = b_.addRegion(op), body = b_.addRegion(op);
  ValueId args[2][3];
  for (int r = 0; r < 2; ++r) {
    for (int i = 0; i < 3; ++i) args[r][i] = m_.addArg(r ? body : cond, m_.value(m_.op(op).results[i]).type, hlo::LocId());
  }
  b_.atEnd(cond);
  b_.yield({b_.compare(hlo::Comparison::kLt, args[0][0], scalar(trips))});
  b_.atEnd(body);
  ValueId next = part(args[1][1], args[1][2]);
  b_.yield({b_.add(args[1][0], scalar(1)), next, args[1][2]});
  b_.atEnd(outer);
  return m_.op(op).results[1];
}

void Generator::collectivesStep(ValueId x, const Ints& d) {
  const std::optional<ManualBody> body = beginManual(x, d);
  if (!body) return;
  const hlo::AxisRef ref = body->axis;
  const int64_t dim = body->dim;
  const Ints& local = body->local;
  ValueId v = body->v;
  auto reduced = [&](ValueId y) { return manualCollective(Opcode::all_reduce, y, ref, dim); };
  switch (r_.below(6)) {
    case 0: {  // a sum or difference of sums
      ValueId a = reduced(v), c = reduced(b_.multiply(v, b_.splatInt(m_.value(v).type, 3)));
      v = r_.chance(50) ? b_.add(a, c) : b_.subtract(a, c);
      break;
    }
    case 1: {  // every device keeps its own part of a sum
      const hlo::Mesh& mesh = m_.meshes[0];
      ValueId sum = reduced(manualCollective(Opcode::all_gather, v, ref, dim));
      ValueId id = b_.convert(b_.partitionId(), ElementType::kS32);
      id = b_.remainder(b_.divide(id, scalar(sharding::stride(mesh, ref))), scalar(ref.size));
      llvm::SmallVector<ValueId, 4> start(d.size(), scalar(0));
      start[dim] = b_.multiply(id, scalar(local[dim]));
      v = b_.dynamicSlice(sum, start, local);
      break;
    }
    case 2:  // the same sum in every trip, of something outside or of something carried
      v = fixedLoop(v, v, 3, [&](ValueId acc, ValueId carried) {
        return b_.add(acc, reduced(r_.chance(50) ? carried : v));
      });
      break;
    case 3: {  // layers gathered at once and read one by one
      if (d.size() < 2) break;
      int64_t layer = dim == 0 ? 1 : 0;
      ValueId whole = manualCollective(Opcode::all_gather, v, ref, dim), zero = scalar(0);
      Ints one = d;
      one[layer] = 1;
      v = fixedLoop(v, whole, d[layer], [&](ValueId acc, ValueId carried) {
        ValueId i = m_.region(b_.region()).args[0];
        llvm::SmallVector<ValueId, 4> start(d.size(), zero);
        start[layer] = i;
        return plusTotal(acc, b_.dynamicSlice(carried, start, one));
      });
      break;
    }
    case 4:  // a part that is the same on all devices
      v = plusTotal(v, b_.sliceDim(reduced(v), dim, 0, 1));
      break;
    default: {  // two sums of one value, and one of another
      ValueId a = reduced(v), c = reduced(v), e = reduced(b_.reverse(v, {dim}));
      v = b_.add(b_.multiply(a, c), b_.multiply(e, v));
      break;
    }
  }
  endManual(*body, v);
}

}  // namespace tpu::partition
