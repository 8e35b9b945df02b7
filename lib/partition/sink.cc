// Gathered values are large: they are made right where they are used. What a loop over layers reads one layer at a time
// is gathered one layer at a time, with the same bytes on the wires and a layer's share of the memory.
#include <map>

#include "collectives.h"
#include "tpu/hlo/analysis.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::RegionId;
using hlo::ValueId;

namespace {

class Sink {
 public:
  explicit Sink(hlo::Module& m) : m_(m) {}

  void run() {
    intoLoops(m_.func(m_.entry).body);
    if (changed_) dropDead(m_);
    downwards(m_.func(m_.entry).body);
  }

 private:
  // ---------------------------------------------------------------- into loops
  void intoLoops(RegionId r) {
    for (OpId id : std::vector<OpId>(m_.region(r).ops)) {
      if (m_.op(id).opcode == Opcode::while_) {
        for (size_t i = 0; i < m_.op(id).operands.size(); ++i) changed_ |= carriedGather(id, i);
      }
      for (RegionId inner : std::vector<RegionId>(m_.op(id).regions.begin(), m_.op(id).regions.end())) intoLoops(inner);
    }
  }

  /// Carried value i is gathered outside, never changes, and is only read in slices that do not cut the gathered
  /// dimension, no more of them than make up the whole.
  bool carriedGather(OpId loop, size_t i) {
    const hlo::Region &cond = m_.region(m_.op(loop).regions[0]), &body = m_.region(m_.op(loop).regions[1]);
    OpId gather = m_.value(m_.op(loop).operands[i]).def;
    if (!gather || m_.op(gather).opcode != Opcode::all_gather || m_.op(gather).operands.size() != 1) return false;
    auto trips = hlo::tripCount(m_, loop);
    if (!trips) return false;
    const hlo::Uses uses(m_);
    ValueId whole = m_.op(gather).results[0], arg = body.args[i];
    OpId yield = body.ops.back();
    if (m_.op(yield).operands[i] != arg || !uses.unused(cond.args[i]) || !uses.unused(m_.op(loop).results[i]) || !uses.single(whole))
      return false;
    int64_t dim = m_.getInt(gather, AttrKey::all_gather_dim), read = 0;
    std::vector<OpId> slices;
    for (const hlo::Use& use : uses.of(arg)) {
      if (use.op == yield) continue;
      const hlo::Op& op = m_.op(use.op);
      if (op.opcode != Opcode::dynamic_slice || use.operand != 0 || op.parent != m_.op(loop).regions[1]) return false;
      if (m_.typeOf(op.results[0]).dims[dim] != m_.typeOf(whole).dims[dim]) return false;
      read += *trips * m_.typeOf(op.results[0]).numElements();
      slices.push_back(use.op);
    }
    if (slices.empty() || read > m_.typeOf(whole).numElements()) return false;
    ValueId shard = m_.op(gather).operands[0];
    m_.op(loop).operands[i] = shard;
    for (ValueId v : {cond.args[i], arg, m_.op(loop).results[i]}) {
      m_.value(v).type = m_.value(shard).type;
      m_.value(v).sharding = m_.value(shard).sharding;
    }
    for (OpId slice : slices) gatherSlice(slice, gather, dim);
    return true;
  }

  void gatherSlice(OpId slice, OpId gather, int64_t dim) {
    RegionId r = m_.op(slice).parent;
    ValueId part = m_.op(slice).results[0];
    hlo::Type type = m_.typeOf(part);
    type.dims[dim] = m_.typeOf(m_.op(gather).operands[0]).dims[dim];
    llvm::SmallVector<int64_t, 4> sizes(type.dims.begin(), type.dims.end());
    OpId local = m_.create(r, Opcode::dynamic_slice, m_.op(slice).operands, {m_.internType(type)}, m_.op(slice).loc);
    m_.setInts(local, AttrKey::slice_sizes, sizes);
    // The old op becomes the gather, so that its users stay.
    m_.op(slice).opcode = Opcode::all_gather;
    m_.op(slice).operands.assign(1, m_.op(local).results[0]);
    m_.op(slice).attrs.clear();
    m_.copyAttrs(gather, slice);
    std::vector<OpId>& ops = m_.region(r).ops;
    ops.insert(llvm::find(ops, slice), local);
    for (size_t w = 0; w < m_.whys.size(); ++w) {
      if (m_.whys[w].op != gather) continue;
      hlo::Why why = m_.whys[w];
      why.op = slice;
      m_.whys.push_back(std::move(why));
      break;
    }
  }

  // ---------------------------------------------------------------- down to the first use
  void downwards(RegionId r) {
    const std::vector<OpId> before = m_.region(r).ops;
    std::vector<OpId> after;
    std::map<uint32_t, OpId> waiting;  // result of a gather -> the gather
    for (OpId id : before) {
      for (RegionId inner : m_.op(id).regions) downwards(inner);
      if (m_.op(id).opcode == Opcode::all_gather && m_.op(id).results.size() == 1) {
        place(m_.op(id).operands, waiting, after);
        waiting.emplace(m_.op(id).results[0].v, id);
        continue;
      }
      place(m_.op(id).operands, waiting, after);
      for (RegionId inner : m_.op(id).regions) {
        hlo::walk(m_, inner, [&](OpId k) { place(m_.op(k).operands, waiting, after); });
      }
      after.push_back(id);
    }
    m_.region(r).ops = std::move(after);
  }

  static void place(llvm::ArrayRef<ValueId> operands, std::map<uint32_t, OpId>& waiting, std::vector<OpId>& after) {
    for (ValueId v : operands) {
      auto it = waiting.find(v.v);
      if (it == waiting.end()) continue;
      after.push_back(it->second);
      waiting.erase(it);
    }
  }

  hlo::Module& m_;
  bool changed_ = false;
};

}  // namespace

void sinkGathers(hlo::Module& m) { Sink(m).run(); }

}  // namespace tpu::partition
