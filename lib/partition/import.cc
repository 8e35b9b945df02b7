// Import of shardings: whatever form the program uses, afterwards there is one mesh, values and ports carry
// shardings over it, and requests inside the program are sdy.sharding_constraint ops.
#include <map>

#include "context.h"
#include "flow.h"
#include "gspmd_ports.h"
#include "manual_borders.h"
#include "tpu/hlo/analysis.h"
#include "tpu/hlo/builder.h"
#include "tpu/hlo/sharding_mistakes.h"
#include "tpu/sharding/gspmd.h"
#include "tpu/sharding/rules.h"
#include "tpu/sharding/text.h"
#include "tpu/support/nearest.h"
#include "tpu/support/port_name.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::MeshId;
using hlo::Opcode;
using hlo::OpId;
using hlo::ShardingId;
using hlo::ValueId;
using sharding::Axes;
using sharding::AxisRef;

namespace {

bool sameAxes(const hlo::Mesh& a, const hlo::Mesh& b) {
  if (a.axes.size() != b.axes.size()) return false;
  for (size_t i = 0; i < a.axes.size(); ++i) {
    if (a.axes[i].name != b.axes[i].name || a.axes[i].size != b.axes[i].size) return false;
  }
  return true;
}

std::vector<int64_t> inOrder(size_t n) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < n; ++i) out.push_back(static_cast<int64_t>(i));
  return out;
}

class Importer {
 public:
  Importer(hlo::Module& m, Context& ctx, const ImportOptions& options)
      : m_(m), ctx_(ctx), options_(options) {}

  llvm::Error run() {
    if (llvm::Error e = chooseMesh()) return e;
    if (!ctx_.mesh) return llvm::Error::success();
    if (llvm::Error e = ports()) return e;
    if (llvm::Error e = overrides()) return e;
    for (hlo::Func& f : m_.funcs) {
      if (!f.body) continue;
      if (llvm::Error e = region(f.body)) return e;
    }
    addGroups();
    if (borders_) {
      if (llvm::Error e = formRegions()) return e;
    }
    useMeshOrder();
    const hlo::Func& entry = m_.func(m_.entry);
    for (size_t i = 0; i < entry.arg_ports.size(); ++i) {
      m_.value(m_.region(entry.body).args[i]).sharding = entry.arg_ports[i].sharding;
    }
    return groups();
  }

 private:
  // ---------------------------------------------------------------- the mesh
  llvm::Error chooseMesh() {
    for (uint32_t i = 0; i < m_.meshes.size(); ++i) {
      const hlo::Mesh& mesh = m_.meshes[i];
      if (mesh.maximal_device >= 0) continue;
      if (!ctx_.mesh || mesh.numDevices() > ctx_.meshOf(m_).numDevices()) ctx_.mesh = MeshId(i);
    }
    if (!options_.mesh.empty()) {
      if (llvm::Error e = overrideMesh()) return e;
    }
    if (!ctx_.mesh) {
      hlo::Mesh mesh = gspmdMesh();
      if (mesh.numDevices() <= 1) return llvm::Error::success();
      m_.meshes.push_back(std::move(mesh));
      ctx_.mesh = MeshId(static_cast<uint32_t>(m_.meshes.size() - 1));
    }
    const hlo::Mesh& mesh = ctx_.meshOf(m_);
    if (std::string wrong = mesh.device_ids.empty() ? "" : hlo::deviceIdsText(mesh.device_ids, mesh.numDevices()); !wrong.empty())
      return fail(Code::kBadMesh, "", "mesh @" + mesh.name + ": " + wrong);
    if (options_.mesh.empty() && m_.num_partitions > 1 && m_.num_partitions != mesh.numDevices())
      return fail(Code::kMeshMismatch, m_.loc(m_.func(m_.entry).loc),
                  "mesh @" + mesh.name + " " + sharding::printMesh(mesh) + " has " + llvm::Twine(mesh.numDevices()) +
                      " devices, the program is for mhlo.num_partitions = " + llvm::Twine(m_.num_partitions) + "; write " +
                      llvm::Twine(mesh.numDevices()) + " there");
    return llvm::Error::success();
  }

  /// The mesh that GSPMD's strings imply.
  hlo::Mesh gspmdMesh() const {
    std::vector<llvm::StringRef> texts;
    for (const hlo::Func& f : m_.funcs) {
      for (const auto* list : {&f.arg_ports, &f.result_ports}) {
        for (const hlo::Port& p : *list) {
          if (llvm::StringRef text = portSharding(p.attrs); !text.empty()) texts.push_back(text);
        }
      }
    }
    for (uint32_t i = 0; i < m_.numOps(); ++i) {
      if (const hlo::Attr* a = m_.findAttr(OpId(i), AttrKey::mhlo_sharding)) texts.push_back(a->str);
    }
    hlo::Mesh mesh = sharding::meshOfGspmd(texts);
    if (m_.num_partitions > mesh.numDevices()) {
      mesh.axes.assign(1, {"device", m_.num_partitions});
      mesh.device_ids.clear();
    }
    return mesh;
  }

  llvm::Error overrideMesh() {
    auto mesh = sharding::parseMesh(options_.mesh);
    if (!mesh) return mesh.takeError();
    if (!ctx_.mesh) {
      m_.meshes.push_back(std::move(*mesh));
      ctx_.mesh = MeshId(static_cast<uint32_t>(m_.meshes.size() - 1));
      return llvm::Error::success();
    }
    hlo::Mesh& own = m_.meshes[ctx_.mesh.v];
    if (sameAxes(own, *mesh)) return llvm::Error::success();
    bool names = own.axes.size() == mesh->axes.size();
    for (const hlo::MeshAxis& a : mesh->axes) names &= own.findAxis(a.name) >= 0;
    if (!names) {
      return fail(
          Code::kMeshMismatch, "",
          "--mesh " + options_.mesh + " has other axes than the program's mesh; write --mesh " + sharding::printMesh(own) +
              ", with other sizes if you like");
    }
    for (uint32_t i = 0; i < m_.numOps(); ++i) {
      if (m_.op(OpId(i)).opcode != Opcode::sdy_manual_computation) continue;
      return fail(Code::kMeshMismatch, m_.loc(m_.op(OpId(i)).loc),
                  "--mesh " + options_.mesh + " cannot replace " + sharding::printMesh(own) +
                      ": a manual region has fixed local shapes");
    }
    // Axes keep their numbers, so that shardings stay as they are; sizes of whole axes follow the mesh.
    llvm::SmallVector<int64_t, 4> before;
    for (hlo::MeshAxis& a : own.axes) {
      before.push_back(a.size);
      a.size = mesh->axes[mesh->findAxis(a.name)].size;
    }
    own.device_ids.clear();
    before_ = before;
    return llvm::Error::success();
  }

  // ---------------------------------------------------------------- one sharding
  /// The same request over the chosen mesh.
  llvm::Expected<ShardingId> convert(ShardingId id, int64_t rank, llvm::StringRef where) {
    if (!id) return id;
    hlo::Sharding s = m_.sharding(id);
    const hlo::Mesh& from = m_.meshes[s.mesh.v];
    const hlo::Mesh& to = ctx_.meshOf(m_);
    if (from.maximal_device >= 0) return ShardingId();
    const bool ordered = from.device_ids != to.device_ids;
    if (s.mesh != ctx_.mesh && (ordered || !sameAxes(from, to))) {
      auto [known, fresh] = translated_.try_emplace(id.v);
      if (fresh) {
        hlo::Sharding over;
        if (!sharding::translateSharding(from, s, to, over))
          return fail(Code::kMeshMismatch, where,
                      ordered ? "meshes @" + from.name + " and @" + to.name + " order the devices differently, and no axes of @" + to.name +
                                    " cut them as " + sharding::print(m_, id) + " does; use one order in the whole program"
                              : "meshes " + sharding::printMesh(from) + " and " + sharding::printMesh(to) +
                                    " cannot be combined in one program");
        known->second = std::move(over);
      }
      s = known->second;
    }
    s.mesh = ctx_.mesh;
    auto fit = [&](llvm::SmallVector<AxisRef, 2>& list) {
      Axes out;
      for (AxisRef a : list) {
        if (a.axis < before_.size() && a.pre == 1 && a.size == before_[a.axis]) a.size = to.axes[a.axis].size;
        sharding::append(out, a);
      }
      list = out;
    };
    for (hlo::DimSharding& d : s.dims) fit(d.axes);
    fit(s.replicated);
    fit(s.unreduced);
    if (llvm::Error e = sharding::check(to, s, rank, where)) return e;
    return m_.internSharding(s);
  }

  llvm::Expected<ShardingId> fromGspmd(llvm::StringRef text, hlo::TypeId type, llvm::StringRef where) {
    auto g = sharding::parseGspmd(ctx_.meshOf(m_), text, where);
    if (!g) return g.takeError();
    group_ = g->group;
    if (g->kind == sharding::GspmdKind::kMaximal || g->kind == sharding::GspmdKind::kUnknown ||
        g->kind == sharding::GspmdKind::kManual)
      return ShardingId();
    hlo::Sharding s;
    s.mesh = ctx_.mesh;
    s.dims.resize(m_.type(type).rank());
    if (g->kind == sharding::GspmdKind::kTiled) {
      if (!g->dims.empty() && g->dims.size() != s.dims.size())
        return fail(Code::kGspmdSharding, where, sharding::gspmdRankText(text, s.dims.size(), g->dims.size()));
      for (size_t d = 0; d < g->dims.size(); ++d) s.dims[d].axes = g->dims[d];
      for (int64_t d : g->open) s.dims[d].open = true;
      s.unreduced = g->unreduced;
    }
    return m_.internSharding(s);
  }

  /// shard_as and shard_like of the string read last: the value shares its sharding with the others of the group.
  void noteGroup(OpId id, ValueId v) {
    if (group_ >= 0) groups_.push_back({id, v, group_});
    group_ = -1;
  }
  void addGroups() {
    for (auto [after, v, group] : groups_) {
      hlo::RegionId r = m_.op(after).parent;
      const std::vector<OpId>& ops = m_.region(r).ops;
      hlo::Builder b(m_, r, m_.op(after).loc);
      b.at(r, llvm::find(ops, after) - ops.begin() + 1);
      m_.setInt(b.create(Opcode::sdy_sharding_group, {v}, {}), AttrKey::group_id, group);
    }
  }

  /// Numbers of devices that the program's own collectives name become positions in the mesh, which is all that
  /// counts from here on; partition_id still tells the device.
  void useMeshOrder() {
    hlo::Mesh& mesh = m_.meshes[ctx_.mesh.v];
    const std::vector<int64_t> ids = std::move(mesh.device_ids);
    mesh.device_ids.clear();
    m_.device_order = ids;
    if (ids.empty() || llvm::is_sorted(ids)) return;
    std::vector<int64_t> position(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) position[ids[i]] = static_cast<int64_t>(i);
    std::vector<OpId> numbers;
    for (uint32_t i = 0; i < m_.numOps(); ++i) {
      OpId id(i);
      if (m_.op(id).opcode == Opcode::partition_id) numbers.push_back(id);
      if (m_.getInt(id, AttrKey::channel_id) <= 0) continue;
      for (AttrKey key : {AttrKey::replica_groups, AttrKey::source_target_pairs}) {
        const hlo::Attr* a = m_.findAttr(id, key);
        if (!a) continue;
        hlo::Groups groups = a->groups;
        if (groups.ids.empty() && key == AttrKey::replica_groups)
          groups = hlo::Groups{1, static_cast<int64_t>(ids.size()), inOrder(ids.size())};  // all, in the order of their numbers
        for (int64_t& d : groups.ids) {
          if (d >= 0 && d < static_cast<int64_t>(position.size())) d = position[d];
        }
        m_.setGroups(id, key, std::move(groups));
      }
    }
    for (OpId id : numbers) deviceNumber(id, ids);
  }

  /// Users of partition_id read a table of the mesh's devices instead.
  void deviceNumber(OpId id, llvm::ArrayRef<int64_t> ids) {
    hlo::RegionId r = m_.op(id).parent;
    if (!r) return;
    const hlo::Uses uses(m_);
    llvm::ArrayRef<hlo::Use> of = uses.of(m_.op(id).results[0]);
    const std::vector<OpId>& ops = m_.region(r).ops;
    hlo::Builder b(m_, r, m_.op(id).loc);
    b.at(r, llvm::find(ops, id) - ops.begin() + 1);
    ValueId table = b.ints(ElementType::kU32, ids);
    ValueId device = b.reshape(b.dynamicSlice(table, {m_.op(id).results[0]}, {1}), {});
    for (const hlo::Use& use : of) m_.op(use.op).operands[use.operand] = device;
  }

  // ---------------------------------------------------------------- ports
  llvm::Error port(hlo::Port& p, hlo::TypeId type, llvm::StringRef where, bool entry) {
    std::string text = takePortSharding(p.attrs);
    if (!text.empty() && !p.sharding) {
      auto id = fromGspmd(text, type, where);
      if (!id) return id.takeError();
      p.sharding = *id;
    } else {
      auto id = convert(p.sharding, m_.type(type).rank(), where);
      if (!id) return id.takeError();
      p.sharding = *id;
    }
    if (entry && p.sharding && !m_.sharding(p.sharding).unreduced.empty()) {
      return fail(Code::kUserUnreduced, where, "unreduced axes on an argument or result of the program");
    }
    return llvm::Error::success();
  }

  llvm::Error ports() {
    for (size_t i = 0; i < m_.funcs.size(); ++i) {
      if (!m_.funcs[i].body) continue;
      bool entry = m_.entry.v == i;
      std::vector<hlo::Port> args = m_.funcs[i].arg_ports, results = m_.funcs[i].result_ports;
      args.resize(m_.region(m_.funcs[i].body).args.size());
      results.resize(m_.funcs[i].result_types.size());
      for (size_t k = 0; k < args.size(); ++k) {
        const hlo::Value& v = m_.value(m_.region(m_.funcs[i].body).args[k]);
        if (llvm::Error e = port(args[k], v.type, m_.loc(v.loc).str(), entry)) return e;
      }
      for (size_t k = 0; k < results.size(); ++k) {
        if (llvm::Error e =
                port(results[k], m_.funcs[i].result_types[k], m_.loc(m_.funcs[i].loc).str(), entry))
          return e;
      }
      m_.funcs[i].arg_ports = std::move(args);
      m_.funcs[i].result_ports = std::move(results);
    }
    return llvm::Error::success();
  }

  llvm::Error overrides() {
    hlo::Func& entry = m_.funcs[m_.entry.v];
    for (const auto& [name, text] : options_.shardings) {
      std::vector<llvm::StringRef> names;
      for (const hlo::Port& p : entry.arg_ports) names.push_back(m_.string(p.name));
      const std::optional<size_t> at = findPort(names, name);
      if (!at) {
        llvm::erase_if(names, [](llvm::StringRef known) { return known.empty(); });
        return fail(Code::kBadOverride, "",
                    "--sharding " + name + ": the program has no such argument (it has " +
                        llvm::Twine(entry.arg_ports.size()) + ")" + suggestName(name, names),
                    ExitStatus::kUsage);
      }
      int64_t rank = m_.typeOf(m_.region(entry.body).args[*at]).rank();
      auto s = sharding::parse(m_, ctx_.mesh, text, rank, "");
      if (!s) return prefixed("--sharding " + name + ": ", s.takeError());
      entry.arg_ports[*at].sharding = m_.internSharding(*s);
    }
    return llvm::Error::success();
  }

  /// Members of one group may not ask for different closed shardings of a dimension.
  llvm::Error groups() {
    std::map<int64_t, ValueId> first;
    for (uint32_t i = 0; i < m_.numOps(); ++i) {
      OpId id(i);
      if (m_.op(id).opcode != Opcode::sdy_sharding_group || !m_.op(id).parent) continue;
      ValueId v = m_.op(id).operands[0];
      auto [it, fresh] = first.try_emplace(m_.getInt(id, AttrKey::group_id), v);
      ShardingId a = m_.value(it->second).sharding, b = m_.value(v).sharding;
      if (fresh || !a || !b) continue;
      const hlo::Sharding &sa = m_.sharding(a), &sb = m_.sharding(b);
      for (size_t d = 0; d < sa.dims.size() && d < sb.dims.size(); ++d) {
        if (sa.dims[d].open || sb.dims[d].open || sa.dims[d].axes == sb.dims[d].axes) continue;
        return fail(Code::kContradiction, m_.loc(m_.op(id).loc),
                    "group " + llvm::Twine(it->first) + " wants one sharding, but dimension " + llvm::Twine(d) + " is closed as " +
                        sharding::print(ctx_.meshOf(m_), sa.dims[d].axes) + " on one member and as " +
                        sharding::print(ctx_.meshOf(m_), sb.dims[d].axes) + " on another; write " +
                        sharding::print(ctx_.meshOf(m_), sa.dims[d].axes) + " on both, or open one with ?");
      }
    }
    return llvm::Error::success();
  }

  // ---------------------------------------------------------------- operations
  llvm::Error region(hlo::RegionId r) {
    for (size_t i = 0; i < m_.region(r).ops.size(); ++i) {
      OpId id = m_.region(r).ops[i];
      if (llvm::Error e = op(id)) return e;
      for (size_t k = 0; k < m_.op(id).regions.size(); ++k) {
        if (llvm::Error e = region(m_.op(id).regions[k])) return e;
        if (!hasPartitionedRegions(m_.op(id).opcode)) dropRequests(m_.op(id).regions[k]);
      }
    }
    return llvm::Error::success();
  }

  /// Scalars of reducers and comparators are whole everywhere: there is nothing to ask for.
  void dropRequests(hlo::RegionId r) {
    std::vector<OpId>& ops = m_.region(r).ops;
    std::map<uint32_t, ValueId> asked;  // result of a request -> its operand
    llvm::erase_if(ops, [&](OpId id) {
      if (m_.op(id).opcode != Opcode::sdy_sharding_constraint) return false;
      asked[m_.op(id).results[0].v] = m_.op(id).operands[0];
      return true;
    });
    if (asked.empty()) return;
    for (OpId id : ops) {
      for (ValueId& v : m_.op(id).operands) {
        for (auto it = asked.find(v.v); it != asked.end(); it = asked.find(v.v)) v = it->second;
      }
    }
  }

  llvm::Error op(OpId id) {
    const std::string where = m_.loc(m_.op(id).loc).str();
    switch (m_.op(id).opcode) {
      case Opcode::sdy_sharding_constraint:
      case Opcode::sdy_reshard: {
        const hlo::Attr* a = m_.findAttr(id, AttrKey::sharding);
        return a ? set(id, 0, a->sharding, where) : llvm::Error::success();
      }
      case Opcode::sdy_manual_computation:
        return manual(id, where);
      case Opcode::custom_call:
        if (m_.getString(id, AttrKey::call_target_name) == "Sharding") return shardingCall(id, where);
        if (isManualBorder(m_, id)) return borderCall(id, where);
        if (std::string wrong = sharding::userRuleProblem(m_, id); !wrong.empty())
          return fail(Code::kShardingRule, where, "sdy.sharding_rule: " + wrong);
        break;
      default:
        break;
    }
    if (const hlo::Attr* a = m_.findAttr(id, AttrKey::result_shardings)) {
      const auto ids = a->ints;
      for (size_t i = 0; i < ids.size() && i < m_.op(id).results.size(); ++i) {
        if (llvm::Error e = set(id, i, ShardingId(static_cast<uint32_t>(ids[i])), where)) return e;
      }
    } else if (const hlo::Attr* g = m_.findAttr(id, AttrKey::mhlo_sharding)) {
      const std::string text = g->str;
      auto parts = sharding::splitTuple(text);
      for (size_t i = 0; i < m_.op(id).results.size() && i < parts.size(); ++i) {
        ValueId v = m_.op(id).results[i];
        if (m_.typeOf(v).kind != hlo::TypeKind::kTensor) continue;
        auto s = fromGspmd(parts[i], m_.value(v).type, where);
        if (!s) return s.takeError();
        m_.value(v).sharding = *s;
        noteGroup(id, v);
      }
    }
    return llvm::Error::success();
  }

  llvm::Error set(OpId id, size_t result, ShardingId sharding, llvm::StringRef where) {
    ValueId v = m_.op(id).results[result];
    auto s = convert(sharding, m_.typeOf(v).rank(), where);
    if (!s) return s.takeError();
    m_.value(v).sharding = *s;
    if (*s && m_.has(id, AttrKey::sharding)) m_.setSharding(id, AttrKey::sharding, *s);
    return llvm::Error::success();
  }

  /// backend_config "unspecified_dims=[0,2]" leaves these dimensions open.
  ShardingId withOpenDims(OpId id, ShardingId s) {
    llvm::StringRef list = m_.getString(id, AttrKey::backend_config);
    size_t at = list.find("unspecified_dims=[");
    if (!s || at == llvm::StringRef::npos) return s;
    hlo::Sharding open = m_.sharding(s);
    list = list.drop_front(at + 18);
    int64_t d;
    while (!list.consumeInteger(10, d)) {
      if (d >= 0 && d < static_cast<int64_t>(open.dims.size())) open.dims[d].open = true;
      if (!list.consume_front(",")) break;
    }
    return m_.internSharding(open);
  }

  /// custom_call @Sharding asks like a constraint.
  llvm::Error shardingCall(OpId id, llvm::StringRef where) {
    ValueId v = m_.op(id).results[0];
    auto s = fromGspmd(m_.getString(id, AttrKey::mhlo_sharding), m_.value(v).type, where);
    if (!s) return s.takeError();
    noteGroup(id, v);
    *s = withOpenDims(id, *s);
    hlo::Op& op = m_.op(id);
    op.opcode = Opcode::sdy_sharding_constraint;
    op.attrs.clear();
    m_.value(v).sharding = *s;
    hlo::Sharding plain;  // nothing is asked
    plain.mesh = ctx_.mesh;
    plain.dims.resize(m_.typeOf(v).rank());
    for (hlo::DimSharding& d : plain.dims) d.open = true;
    m_.setSharding(id, AttrKey::sharding, *s ? *s : m_.internSharding(plain));
    return llvm::Error::success();
  }

  /// GSPMD's borders of a manual region: @SPMDFullToShardShape takes its operand in the sharding asked for just before,
  /// @SPMDShardToFullShape gives its result in its own. Their own strings name the axes that are manual behind them.
  llvm::Error borderCall(OpId id, llvm::StringRef where) {
    borders_ = true;
    bool enters = m_.getString(id, AttrKey::call_target_name) == "SPMDFullToShardShape";
    ValueId outside = enters ? m_.op(id).operands[0] : m_.op(id).results[0];
    const std::string text = m_.getString(id, AttrKey::mhlo_sharding).str();
    auto g = sharding::parseGspmd(ctx_.meshOf(m_), text, where);
    if (!g) return g.takeError();
    Axes manual = g->manual;
    if (g->kind == sharding::GspmdKind::kManual) {
      for (size_t a = 0; a < ctx_.meshOf(m_).axes.size(); ++a) sharding::append(manual, sharding::fullAxis(ctx_.meshOf(m_), a));
    }
    ShardingId s = m_.value(outside).sharding;
    if (!enters) {
      auto own = fromGspmd(text, m_.value(outside).type, where);
      if (!own) return own.takeError();
      m_.value(outside).sharding = s = withOpenDims(id, *own);
    }
    hlo::Sharding plain;
    plain.mesh = ctx_.mesh;
    plain.dims.resize(m_.typeOf(outside).rank());
    m_.setSharding(id, AttrKey::sharding, s ? s : m_.internSharding(plain));
    m_.setAxes(id, AttrKey::manual_axes, ctx_.mesh, manual);
    m_.removeAttr(id, AttrKey::mhlo_sharding);
    return llvm::Error::success();
  }

  llvm::Error formRegions() {
    if (llvm::Error e = hlo::inlineCalls(m_, true)) return e;
    auto made = formManualRegions(m_, ctx_.mesh);
    if (!made) return made.takeError();
    for (OpId id : *made) {
      if (llvm::Error e = manual(id, m_.loc(m_.op(id).loc).str())) return e;
    }
    return llvm::Error::success();
  }

  llvm::Error manual(OpId id, llvm::StringRef where) {
    Axes manual_axes;
    if (const hlo::Attr* a = m_.findAttr(id, AttrKey::manual_axes)) {
      hlo::Attr moved = *a;
      const hlo::Mesh& from = m_.meshes[moved.mesh ? moved.mesh.v : ctx_.mesh.v];
      Axes over;
      for (const AxisRef& r : moved.axes) {
        int to = ctx_.meshOf(m_).findAxis(from.axes[r.axis].name);
        Axes part;
        if (moved.mesh && moved.mesh != ctx_.mesh && sharding::translateAxes(from, r, ctx_.meshOf(m_), part)) {
          sharding::append(over, part);
        } else if (to >= 0) {
          bool full = r.pre == 1 && r.size == from.axes[r.axis].size;
          sharding::append(over, full ? sharding::fullAxis(ctx_.meshOf(m_), to) : AxisRef{static_cast<uint32_t>(to), r.pre, r.size});
        } else {
          return fail(Code::kUnknownAxis, where,
                      "manual axis '" + from.axes[r.axis].name + "' is not an axis of the mesh");
        }
      }
      moved.axes = over;
      moved.mesh = ctx_.mesh;
      manual_axes = moved.axes;
      for (OpId outer = parentOp(id); outer; outer = parentOp(outer)) {
        const hlo::Attr* around = m_.findAttr(outer, AttrKey::manual_axes);
        if (m_.op(outer).opcode != Opcode::sdy_manual_computation || !around) continue;
        for (const AxisRef& r : manual_axes) {
          if (sharding::overlaps(r, around->axes))
            return fail(Code::kManualNested, where,
                        "axis '" + ctx_.meshOf(m_).axes[r.axis].name + "' is manual already in the region at " +
                            m_.loc(m_.op(outer).loc));
        }
      }
      m_.setAttr(id, std::move(moved));
    }
    for (AttrKey key : {AttrKey::in_shardings, AttrKey::out_shardings}) {
      const hlo::Attr* a = m_.findAttr(id, key);
      if (!a) continue;
      hlo::Attr moved = *a;
      bool in = key == AttrKey::in_shardings;
      for (size_t i = 0; i < moved.ints.size(); ++i) {
        ValueId v = in ? m_.op(id).operands[i] : m_.op(id).results[i];
        if (m_.typeOf(v).kind != hlo::TypeKind::kTensor) continue;
        auto s = convert(ShardingId(static_cast<uint32_t>(moved.ints[i])), m_.typeOf(v).rank(), where);
        if (!s) return s.takeError();
        moved.ints[i] = s->v;
        ValueId target = in ? m_.region(m_.op(id).regions[0]).args[i] : v;
        m_.value(target).sharding = in ? inner(*s, manual_axes) : *s;
      }
      m_.setAttr(id, std::move(moved));
    }
    return llvm::Error::success();
  }

  OpId parentOp(OpId id) const {
    hlo::RegionId r = m_.op(id).parent;
    return r ? m_.region(r).parent_op : OpId();
  }

  /// What is left of a sharding inside the region.
  ShardingId inner(ShardingId id, const Axes& manual) {
    if (!id) return id;
    hlo::Sharding s = m_.sharding(id);
    auto strip = [&](llvm::SmallVector<AxisRef, 2>& list) {
      llvm::erase_if(list, [&](const AxisRef& a) { return sharding::overlaps(a, manual); });
    };
    for (hlo::DimSharding& d : s.dims) strip(d.axes);
    strip(s.replicated);
    return m_.internSharding(s);
  }

  hlo::Module& m_;
  Context& ctx_;
  const ImportOptions& options_;
  struct Member {
    OpId after;
    ValueId value;
    int64_t group;
  };
  std::vector<Member> groups_;  // of shard_as and shard_like
  int64_t group_ = -1;          // of the string read last
  std::map<uint32_t, hlo::Sharding> translated_;  // by number: what stood over another mesh
  bool borders_ = false;        // GSPMD's manual regions are in the program
  llvm::SmallVector<int64_t, 4> before_;  // axis sizes that --mesh replaced
};

}  // namespace

llvm::Error importShardings(hlo::Module& m, Context& ctx, const ImportOptions& options) {
  return Importer(m, ctx, options).run();
}

}  // namespace tpu::partition
