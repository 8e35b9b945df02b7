// Edges of control flow, and the values that are free to be made anywhere.
#include "flow.h"

#include <map>

namespace tpu::partition {

using hlo::Opcode;

bool hasPartitionedRegions(Opcode opcode) {
  return opcode == Opcode::while_ || opcode == Opcode::if_ || opcode == Opcode::case_ ||
         opcode == Opcode::sdy_manual_computation;
}

namespace {

const hlo::Op& terminator(const hlo::Module& m, hlo::RegionId region) {
  return m.op(m.region(region).ops.back());
}

void whileEdges(const hlo::Module& m, hlo::OpId id, Flow& flow) {
  const hlo::Op& op = m.op(id);
  const hlo::Region &cond = m.region(op.regions[0]), &body = m.region(op.regions[1]);
  const hlo::Op& ret = terminator(m, op.regions[1]);
  for (size_t i = 0; i < op.results.size(); ++i) {
    Edge e;
    e.op = id;
    e.owner = body.args[i].v;
    e.targets = {cond.args[i].v, op.results[i].v};
    e.sources = {op.operands[i].v, ret.operands[i].v};
    flow.edges.push_back(std::move(e));
  }
}

void branchEdges(const hlo::Module& m, hlo::OpId id, Flow& flow) {
  const hlo::Op& op = m.op(id);
  for (size_t i = 0; i < op.results.size(); ++i) {
    Edge e;
    e.op = id;
    e.owner = op.results[i].v;
    for (hlo::RegionId r : op.regions) e.sources.push_back(terminator(m, r).operands[i].v);
    flow.edges.push_back(std::move(e));
  }
}

/// The leading part of each dimension's axes that is manual.
llvm::SmallVector<sharding::Axes, 4> manualPrefix(const hlo::Module& m, uint32_t sharding,
                                                  sharding::AxesRef manual, size_t rank) {
  llvm::SmallVector<sharding::Axes, 4> out(rank);
  if (sharding == hlo::ShardingId::kNone) return out;
  const hlo::Sharding& s = m.sharding(hlo::ShardingId(sharding));
  for (size_t d = 0; d < s.dims.size() && d < rank; ++d) {
    for (const hlo::AxisRef& a : s.dims[d].axes) {
      if (sharding::overlaps(a, manual)) sharding::append(out[d], a);
    }
  }
  return out;
}

void manualEdges(const hlo::Module& m, hlo::OpId id, Flow& flow) {
  const hlo::Op& op = m.op(id);
  const hlo::Region& body = m.region(op.regions[0]);
  const hlo::Op& ret = terminator(m, op.regions[0]);
  const hlo::Attr* axes = m.findAttr(id, hlo::AttrKey::manual_axes);
  sharding::AxesRef manual = axes ? sharding::AxesRef(axes->axes) : sharding::AxesRef();
  auto in = m.getInts(id, hlo::AttrKey::in_shardings), out = m.getInts(id, hlo::AttrKey::out_shardings);
  auto border = [&](hlo::ValueId owner, hlo::ValueId source, bool enters, llvm::ArrayRef<int64_t> list,
                    size_t i) {
    Edge e;
    e.op = id;
    e.owner = owner.v;
    e.sources = {source.v};
    e.manual = true;
    e.enters = enters;
    e.prefix = manualPrefix(m, i < list.size() ? static_cast<uint32_t>(list[i]) : hlo::ShardingId::kNone,
                            manual, m.typeOf(owner).rank());
    flow.edges.push_back(std::move(e));
  };
  for (size_t i = 0; i < body.args.size(); ++i) border(body.args[i], op.operands[i], true, in, i);
  for (size_t i = 0; i < op.results.size(); ++i) border(op.results[i], ret.operands[i], false, out, i);
}

}  // namespace

Flow findFlow(const hlo::Module& m) {
  Flow flow;
  flow.num_values = m.numValues();
  const hlo::Func& entry = m.func(m.entry);
  flow.num_slots = flow.num_values + entry.result_types.size();
  std::map<int64_t, Slot> groups;
  walkPartitioned(m, entry.body, [&](hlo::OpId id) {
    switch (m.op(id).opcode) {
      case Opcode::while_:
        whileEdges(m, id, flow);
        break;
      case Opcode::if_:
      case Opcode::case_:
        branchEdges(m, id, flow);
        break;
      case Opcode::sdy_manual_computation:
        manualEdges(m, id, flow);
        break;
      case Opcode::sdy_sharding_group: {
        // Members of a group follow the first one, and it them.
        auto [first, fresh] =
            groups.try_emplace(m.getInt(id, hlo::AttrKey::group_id), m.op(id).operands[0].v);
        if (fresh) break;
        Edge e;
        e.op = id;
        e.owner = first->second;
        e.sources = {m.op(id).operands[0].v};
        flow.edges.push_back(std::move(e));
        break;
      }
      default:
        break;
    }
  });
  const hlo::Op& ret = terminator(m, entry.body);
  for (size_t i = 0; i < ret.operands.size(); ++i) {
    Edge e;
    e.owner = flow.resultSlot(i);
    e.sources = {ret.operands[i].v};
    flow.edges.push_back(std::move(e));
  }
  flow.owner.resize(flow.num_slots);
  for (Slot s = 0; s < flow.num_slots; ++s) flow.owner[s] = s;
  flow.edges_of.resize(flow.num_slots);
  for (uint32_t i = 0; i < flow.edges.size(); ++i) {
    const Edge& e = flow.edges[i];
    for (Slot t : e.targets) flow.owner[t] = e.owner;
    flow.edges_of[e.owner].push_back(i);
    for (Slot s : e.sources) flow.edges_of[s].push_back(i);
  }
  // A source may itself be a target of an outer loop: list the edge under its owner.
  for (uint32_t i = 0; i < flow.edges.size(); ++i) {
    for (Slot s : flow.edges[i].sources) {
      if (flow.owner[s] != s) flow.edges_of[flow.owner[s]].push_back(i);
    }
  }
  return flow;
}

std::vector<bool> findFreeValues(const hlo::Module& m) {
  std::vector<bool> free(m.numValues(), false);
  walkPartitioned(m, m.func(m.entry).body, [&](hlo::OpId id) {
    const hlo::Op& op = m.op(id);
    bool cheap = hlo::hasTrait(op.opcode, hlo::kElementwise);
    switch (op.opcode) {
      case Opcode::constant:
      case Opcode::iota:
      case Opcode::broadcast:
      case Opcode::broadcast_in_dim:
      case Opcode::reshape:
      case Opcode::transpose:
        cheap = true;
        break;
      default:
        break;
    }
    if (!cheap) return;
    for (hlo::ValueId v : op.operands) {
      if (!free[v.v]) return;
    }
    for (hlo::ValueId v : op.results) free[v.v] = true;
  });
  return free;
}

}  // namespace tpu::partition
