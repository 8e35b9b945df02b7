// Verdicts at requests: where a size does not divide by its number of shards, the user learns what each
// device holds.
#include <algorithm>

#include "context.h"
#include "tpu/sharding/text.h"

namespace tpu::partition {

namespace {

std::string shardList(int64_t size, int64_t shards) {
  int64_t c = sharding::shardSize(size, shards);
  std::string out;
  int64_t shown = std::min<int64_t>(shards, 16);
  for (int64_t i = 0; i < shown; ++i)
    out += (i ? "," : "") + std::to_string(std::clamp<int64_t>(size - i * c, 0, c));
  return shown < shards ? out + ",.." : out;
}

}  // namespace

void warnUneven(const hlo::Module& m, Context& ctx) {
  const hlo::Mesh& mesh = ctx.meshOf(m);
  auto look = [&](hlo::ShardingId id, hlo::TypeId type, llvm::StringRef where, const llvm::Twine& what) {
    if (!id) return;
    const hlo::Sharding& s = m.sharding(id);
    const hlo::Type& t = m.type(type);
    for (size_t d = 0; d < s.dims.size() && d < t.dims.size(); ++d) {
      int64_t n = t.dims[d], k = sharding::product(s.dims[d].axes);
      if (n % k == 0) continue;
      int64_t below = n / k * k;
      std::string sizes = (below ? std::to_string(below) + " and " : "") + std::to_string(below + k);
      ctx.sink->warn(Code::kPadded, where,
                     what + ": dimension " + llvm::Twine(d) + " of size " + llvm::Twine(n) + " over " +
                         sharding::print(mesh, s.dims[d].axes) + " (" + llvm::Twine(k) +
                         " shards) is padded to " + llvm::Twine(sharding::shardSize(n, k)) +
                         " per device, which hold " + shardList(n, k) + "; " + sizes + " would divide");
    }
  };
  const hlo::Func& entry = m.func(m.entry);
  for (size_t i = 0; i < entry.arg_ports.size(); ++i) {
    const hlo::Value& v = m.value(m.region(entry.body).args[i]);
    look(entry.arg_ports[i].sharding, v.type, m.loc(v.loc), "argument " + llvm::Twine(i));
  }
  for (size_t i = 0; i < entry.result_ports.size(); ++i) {
    look(entry.result_ports[i].sharding, entry.result_types[i], m.loc(entry.loc), "result " + llvm::Twine(i));
  }
  for (const hlo::Func& f : m.funcs) {
    if (!f.body) continue;
    walk(m, f.body, [&](hlo::OpId id) {
      if (m.op(id).opcode != hlo::Opcode::sdy_sharding_constraint) return;
      const hlo::Value& v = m.value(m.op(id).results[0]);
      look(v.sharding, v.type, m.loc(m.op(id).loc), "constraint");
    });
  }
}

namespace {

hlo::Sharding settled(const hlo::MeshId mesh, const DimStates& dims) {
  hlo::Sharding s;
  s.mesh = mesh;
  s.dims.resize(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) s.dims[d].axes = dims[d].axes;
  return s;
}

}  // namespace

void judgeRequests(const hlo::Module& m, Context& ctx) {
  const hlo::Mesh& mesh = ctx.meshOf(m);
  const Propagated& p = *ctx.propagated;
  auto judge = [&](hlo::ShardingId id, hlo::TypeId type, Slot slot, llvm::StringRef loc, const llvm::Twine& what) {
    if (!id) return;
    const hlo::Sharding& asked = m.sharding(id);
    const hlo::Type& t = m.type(type);
    bool free = slot < p.free.size() && p.free[slot];  // made where it is needed, in whatever sharding
    hlo::Sharding got = free ? asked : settled(ctx.mesh, p.of(slot));
    Request r{what.str(), loc.str(), sharding::print(mesh, asked), sharding::print(mesh, got), "honoured", ""};
    bool any = false, same = true;
    for (size_t d = 0; d < asked.dims.size() && d < got.dims.size(); ++d) {
      sharding::AxesRef want = asked.dims[d].axes, have = got.dims[d].axes;
      any |= !have.empty();
      same &= asked.dims[d].open ? sharding::isPrefix(want, have) : sharding::Axes(want) == sharding::Axes(have);
      int64_t shards = sharding::product(have);
      if (t.dims[d] % shards == 0) continue;
      r.verdict = "padded";
      r.sizes = shardList(t.dims[d], shards);
    }
    if (!same) r.verdict = any ? "moved" : "replicated";
    if (!same && ctx.sink)
      ctx.sink->warn(Code::kNotHonoured, loc, what + ": asked for " + r.asked + ", becomes " + r.got);
    ctx.requests.push_back(std::move(r));
  };
  const hlo::Func& entry = m.func(m.entry);
  for (size_t i = 0; i < entry.arg_ports.size(); ++i) {
    hlo::ValueId v = m.region(entry.body).args[i];
    judge(entry.arg_ports[i].sharding, m.value(v).type, v.v, m.loc(m.value(v).loc), "argument " + llvm::Twine(i));
  }
  walkPartitioned(m, entry.body, [&](hlo::OpId id) {
    if (m.op(id).opcode != hlo::Opcode::sdy_sharding_constraint) return;
    hlo::ValueId v = m.op(id).results[0];
    judge(m.value(v).sharding, m.value(v).type, v.v, m.loc(m.op(id).loc), "constraint");
  });
  for (size_t i = 0; i < entry.result_ports.size(); ++i) {
    judge(entry.result_ports[i].sharding, entry.result_types[i], p.flow.resultSlot(i), m.loc(entry.loc),
          "result " + llvm::Twine(i));
  }
}

}  // namespace tpu::partition
