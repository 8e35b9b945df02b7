// The passes before partitioning proper: calls inlined, shardings propagated and written to values and ports.
#include "context.h"
#include "flow.h"
#include "tpu/hlo/analysis.h"

namespace tpu::partition {

using hlo::Opcode;
using hlo::OpId;
using hlo::ShardingId;
using hlo::ValueId;

namespace {

/// Named computations are their bodies.
void dissolveNamed(hlo::Module& m, hlo::RegionId r, std::vector<ValueId>& map, bool& any) {
  std::vector<OpId> after;
  for (OpId id : std::vector<OpId>(m.region(r).ops)) {
    for (size_t k = 0; k < m.op(id).regions.size(); ++k) dissolveNamed(m, m.op(id).regions[k], map, any);
    if (m.op(id).opcode != Opcode::sdy_named_computation) {
      after.push_back(id);
      continue;
    }
    any = true;
    hlo::RegionId body = m.op(id).regions[0];
    map.resize(m.numValues());
    for (size_t i = 0; i < m.region(body).args.size(); ++i)
      map[m.region(body).args[i].v] = m.op(id).operands[i];
    for (OpId inner : m.region(body).ops) {
      if (m.op(inner).opcode == Opcode::return_) {
        for (size_t i = 0; i < m.op(id).results.size(); ++i)
          map[m.op(id).results[i].v] = m.op(inner).operands[i];
        continue;
      }
      m.op(inner).parent = r;
      after.push_back(inner);
    }
  }
  m.region(r).ops = std::move(after);
}

/// Groups and pairs of the program's own collectives name devices of the mesh.
llvm::Error checkDevices(const hlo::Module& m, const Context& ctx) {
  if (!ctx.mesh) return llvm::Error::success();
  const int64_t devices = ctx.meshOf(m).numDevices();
  llvm::Error found = llvm::Error::success();
  hlo::walk(m, [&](OpId id) {
    if (found || m.getInt(id, hlo::AttrKey::channel_id) <= 0) return;
    for (hlo::AttrKey key : {hlo::AttrKey::replica_groups, hlo::AttrKey::source_target_pairs}) {
      const hlo::Attr* a = m.findAttr(id, key);
      for (size_t i = 0; a && !found && i < a->groups.ids.size(); ++i) {
        if (a->groups.ids[i] < devices) continue;
        found = fail(Code::kBadGroups, m.loc(m.op(id).loc),
                     hlo::opInfo(m.op(id).opcode).mnemonic + llvm::Twine(" names device ") + llvm::Twine(a->groups.ids[i]) +
                         "; the mesh has the devices 0 to " + llvm::Twine(devices - 1));
      }
    }
  });
  return found;
}

}  // namespace

llvm::Error inlineAll(hlo::Module& m, Context& ctx) {
  if (llvm::Error e = hlo::inlineCalls(m, true)) return e;
  hlo::flattenTuples(m);
  std::vector<ValueId> map;
  bool any = false;
  dissolveNamed(m, m.func(m.entry).body, map, any);
  if (any) m.replaceUses(map);
  if (llvm::Error e = checkDevices(m, ctx)) return e;
  return checkManualAxes(m, ctx);
}

llvm::Error propagateShardings(hlo::Module& m, Context& ctx) {
  ctx.propagated = std::make_unique<Propagated>(propagate(m, ctx.mesh));
  const Propagated& p = *ctx.propagated;
  judgeRequests(m, ctx);
  if (llvm::Error e = explainValue(m, ctx)) return e;
  hlo::Func& entry = m.funcs[m.entry.v];
  auto plain = [&](Slot s, ShardingId wish) {
    Layout l;
    for (const hlo::DimSharding& d : p.of(s)) l.dims.push_back(d.axes);
    if (wish) l.unreduced = m.sharding(wish).unreduced;
    return internLayout(m, ctx.mesh, l);
  };
  // In program order, so that shardings are numbered alike however the program was read.
  auto settle = [&](ValueId v) {
    ShardingId id;
    if (!p.dims[v.v].empty() && !p.free[v.v]) id = plain(v.v, m.value(v).sharding);
    m.value(v).sharding = id;
  };
  for (ValueId v : m.region(entry.body).args) settle(v);
  walkPartitioned(m, entry.body, [&](OpId id) {
    for (size_t i = 0; i < m.op(id).results.size(); ++i) settle(m.op(id).results[i]);
    if (!hasPartitionedRegions(m.op(id).opcode)) return;
    for (hlo::RegionId r : m.op(id).regions) {
      for (ValueId v : m.region(r).args) settle(v);
    }
  });
  for (size_t i = 0; i < entry.arg_ports.size(); ++i)
    entry.arg_ports[i].sharding = m.value(m.region(entry.body).args[i]).sharding;
  for (size_t i = 0; i < entry.result_ports.size(); ++i)
    entry.result_ports[i].sharding = plain(p.flow.resultSlot(i), ShardingId());
  return llvm::Error::success();
}

}  // namespace tpu::partition
