// GSPMD marks a manual region by custom calls where values enter and leave it; what lies between is found by following
// the values. One region after another becomes a sdy.manual_computation, outer ones first, so that everything behind the
// import knows one form only.
#include "manual_borders.h"

#include <map>
#include <numeric>

#include "tpu/hlo/analysis.h"
#include "tpu/sharding/axes.h"
#include "tpu/support/diagnostics.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::RegionId;
using hlo::ValueId;
using sharding::Axes;

bool isManualBorder(const hlo::Module& m, OpId id) {
  if (m.op(id).opcode != Opcode::custom_call) return false;
  llvm::StringRef target = m.getString(id, AttrKey::call_target_name);
  return target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape";
}

namespace {

bool within(const Axes& part, const Axes& whole) {
  return llvm::all_of(part, [&](const hlo::AxisRef& a) { return sharding::overlaps(a, whole); });
}

Axes without(const Axes& list, const Axes& gone) {
  Axes out;
  for (const hlo::AxisRef& a : list) {
    if (!sharding::overlaps(a, gone)) out.push_back(a);
  }
  return out;
}

/// What an op is to the regions that start at one level.
enum class Role : uint8_t { kOutside, kFree, kEnters, kInside, kLeaves };

/// One manual region: ops in their order.
struct Part {
  std::vector<OpId> enters, body, leaves;
  Axes manual;
};

class Former {
 public:
  Former(hlo::Module& m, hlo::MeshId mesh) : m_(m), mesh_(mesh) {}

  llvm::Expected<std::vector<OpId>> run() {
    for (size_t f = 0; f < m_.funcs.size(); ++f) {
      if (!m_.funcs[f].body) continue;
      if (llvm::Error e = region(m_.funcs[f].body, {})) return e;
    }
    m_.replaceUses(replaced_);
    return made_;
  }

 private:
  bool enters(OpId id) const {
    return isManualBorder(m_, id) && m_.getString(id, AttrKey::call_target_name) == "SPMDFullToShardShape";
  }
  bool leaves(OpId id) const { return isManualBorder(m_, id) && !enters(id); }
  Axes axesOf(OpId border) const {
    const hlo::Attr* a = m_.findAttr(border, AttrKey::manual_axes);
    return a ? Axes(a->axes.begin(), a->axes.end()) : Axes();
  }
  Axes allAxes() const {
    Axes out;
    for (size_t a = 0; a < m_.meshes[mesh_.v].axes.size(); ++a) {
      if (m_.meshes[mesh_.v].axes[a].size > 1) out.push_back(sharding::fullAxis(m_.meshes[mesh_.v], static_cast<int>(a)));
    }
    return out;
  }

  /// A value as it stands after what was moved so far.
  ValueId now(ValueId v) const {
    while (v.v < replaced_.size() && replaced_[v.v].valid()) v = replaced_[v.v];
    return v;
  }
  void replace(ValueId from, ValueId to) {
    if (replaced_.size() < m_.numValues()) replaced_.resize(m_.numValues());
    replaced_[from.v] = to;
  }

  /// Every value that the op and its regions read.
  template <class Fn>
  void reads(OpId id, Fn&& fn) {
    for (size_t i = 0; i < m_.op(id).operands.size(); ++i) {
      ValueId v = m_.op(id).operands[i];  // `fn` may make ops
      fn(v);
      m_.op(id).operands[i] = v;
    }
    for (size_t k = 0; k < m_.op(id).regions.size(); ++k) {
      const std::vector<OpId> ops = m_.region(m_.op(id).regions[k]).ops;
      for (OpId inner : ops) reads(inner, fn);
    }
  }

  // ---------------------------------------------------------------- which op is what
  struct Level {
    std::map<uint32_t, Axes> manual;  // values inside of a region -> the axes that are manual there
    std::map<uint32_t, bool> free;    // values made from nothing
    std::map<uint32_t, Role> role;    // ops
    bool inside(ValueId v) const { return manual.count(v.v) != 0; }
  };

  llvm::Expected<Level> classify(RegionId r, const Axes& outer) {
    Level level;
    for (OpId id : m_.region(r).ops) {
      bool inside = false, all_free = m_.op(id).regions.empty() && !hlo::hasTrait(m_.op(id).opcode, hlo::kSideEffect);
      Axes manual;
      reads(id, [&](ValueId& v) {
        ValueId at = now(v);
        all_free &= level.free.count(at.v) != 0;
        if (auto it = level.manual.find(at.v); it != level.manual.end()) {
          inside = true;
          if (it->second.size() > manual.size()) manual = it->second;
        }
      });
      Role role = inside ? Role::kInside : all_free ? Role::kFree : Role::kOutside;
      if (enters(id)) {
        if (!inside) role = Role::kEnters;
        for (const hlo::AxisRef& a : without(axesOf(id), manual)) manual.push_back(a);
        if (!inside) manual = without(manual, outer);
      } else if (leaves(id)) {
        Axes left = without(axesOf(id), outer);
        role = left.empty() ? Role::kLeaves : Role::kInside;
        manual = left;
      }
      if (hlo::hasTrait(m_.op(id).opcode, hlo::kTerminator)) {
        if (inside) return neverLeft(id);
        role = Role::kOutside;
      }
      level.role[id.v] = role;
      for (ValueId v : m_.op(id).results) {
        if (role == Role::kFree) level.free[v.v] = true;
        if ((role == Role::kInside || role == Role::kEnters) && !manual.empty()) level.manual[v.v] = manual;
      }
    }
    return level;
  }

  llvm::Error neverLeft(OpId id) const {
    return fail(Code::kGspmdSharding, m_.loc(m_.op(id).loc),
                "a value of a manual region is used outside of it; let it leave through @SPMDShardToFullShape");
  }

  /// Regions are what hangs together through values inside.
  llvm::Expected<std::vector<Part>> parts(RegionId r, const Axes& outer, Level& level) {
    const std::vector<OpId>& ops = m_.region(r).ops;
    std::vector<size_t> group(ops.size());
    std::iota(group.begin(), group.end(), size_t{0});
    auto find = [&](size_t i) {
      while (group[i] != i) i = group[i] = group[group[i]];
      return i;
    };
    std::map<uint32_t, size_t> maker;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (level.role[ops[i].v] == Role::kInside || level.role[ops[i].v] == Role::kLeaves) {
        reads(ops[i], [&](ValueId& v) {
          if (auto it = maker.find(now(v).v); it != maker.end()) group[find(i)] = find(it->second);
        });
      }
      for (ValueId v : m_.op(ops[i]).results) {
        if (level.inside(v)) maker[v.v] = i;
      }
    }
    std::map<size_t, size_t> number;
    std::vector<Part> out;
    for (size_t i = 0; i < ops.size(); ++i) {
      Role role = level.role[ops[i].v];
      if (role == Role::kOutside || role == Role::kFree) continue;
      auto [it, fresh] = number.try_emplace(find(i), out.size());
      if (fresh) out.emplace_back();
      Part& part = out[it->second];
      (role == Role::kEnters ? part.enters : role == Role::kLeaves ? part.leaves : part.body).push_back(ops[i]);
      // A value made from nothing leaves a region in which every axis is manual.
      ValueId edge = role == Role::kLeaves ? now(m_.op(ops[i]).operands[0]) : ValueId();
      Axes manual;
      if (role == Role::kEnters) manual = level.manual[m_.op(ops[i]).results[0].v];
      if (edge.valid() && !level.inside(edge) && !level.free.count(edge.v))
        return fail(Code::kGspmdSharding, m_.loc(m_.op(ops[i]).loc),
                    "what leaves a manual region here never entered it through @SPMDFullToShardShape");
      if (edge.valid()) manual = level.inside(edge) ? level.manual[edge.v] : without(allAxes(), outer);
      if (role == Role::kInside) continue;
      if (part.manual.empty()) part.manual = manual;
      if (manual.empty() || !within(manual, part.manual) || !within(part.manual, manual))
        return fail(Code::kGspmdSharding, m_.loc(m_.op(ops[i]).loc),
                    "this border of a manual region names other manual axes than the region's other borders");
    }
    return out;
  }

  // ---------------------------------------------------------------- the new op
  /// A request that stands only in front of a border says what the region's in_sharding says.
  ValueId beforeRequest(ValueId v, const hlo::Uses& uses, hlo::ShardingId sharding) {
    OpId def = m_.value(v).def;
    bool request = def && m_.op(def).opcode == Opcode::sdy_sharding_constraint && v.v < uses_known_ && uses.single(v) &&
                   m_.value(v).sharding == sharding;
    if (!request) return v;
    dropped_[def.v] = true;
    return now(m_.op(def).operands[0]);
  }

  /// Copies what makes `v` from nothing into the region.
  ValueId copyIn(ValueId v, RegionId body, std::vector<ValueId>& map, std::vector<OpId>& list) {
    if (v.v < map.size() && map[v.v].valid()) return map[v.v];
    OpId def = m_.value(v).def;
    for (size_t i = 0; i < m_.op(def).operands.size(); ++i) {
      ValueId in = now(m_.op(def).operands[i]), copy = copyIn(in, body, map, list);
      if (map.size() < m_.numValues()) map.resize(m_.numValues());
      map[m_.op(def).operands[i].v] = copy;
    }
    hlo::copyOp(m_, def, body, map, &list);
    return map[v.v];
  }

  llvm::Expected<OpId> form(RegionId r, const Part& part, const Level& level, const hlo::Uses& uses) {
    llvm::SmallVector<ValueId, 4> in;
    llvm::SmallVector<hlo::TypeId, 4> types;
    llvm::SmallVector<int64_t, 4> in_shardings, out_shardings;
    for (OpId id : part.enters) {
      hlo::ShardingId s = m_.findAttr(id, AttrKey::sharding)->sharding;
      in.push_back(beforeRequest(now(m_.op(id).operands[0]), uses, s));
      in_shardings.push_back(s.v);
    }
    for (OpId id : part.leaves) {
      types.push_back(m_.value(m_.op(id).results[0]).type);
      out_shardings.push_back(m_.findAttr(id, AttrKey::sharding)->sharding.v);
    }
    hlo::LocId loc = m_.op(part.enters.empty() ? part.leaves[0] : part.enters[0]).loc;
    OpId made = m_.create(r, Opcode::sdy_manual_computation, in, types, loc);
    auto list = [&](AttrKey key, llvm::ArrayRef<int64_t> ids) {
      hlo::Attr a{};
      a.key = key;
      a.kind = hlo::AttrKind::kShardings;
      a.ints.assign(ids.begin(), ids.end());
      m_.setAttr(made, std::move(a));
    };
    list(AttrKey::in_shardings, in_shardings);
    list(AttrKey::out_shardings, out_shardings);
    Axes manual = part.manual;
    llvm::sort(manual, [](const hlo::AxisRef& a, const hlo::AxisRef& b) {
      return a.axis != b.axis ? a.axis < b.axis : a.pre < b.pre;
    });
    m_.setAxes(made, AttrKey::manual_axes, mesh_, manual);
    RegionId body = m_.addRegion(made, m_.region(r).func);
    for (OpId id : part.enters) {
      ValueId inside = m_.op(id).results[0];
      replace(inside, m_.addArg(body, m_.value(inside).type, m_.op(id).loc));
    }
    std::vector<OpId> ops;
    std::vector<ValueId> copies;
    std::map<uint32_t, bool> brought;
    bool strange = false;
    auto bring = [&](ValueId& v) {
      ValueId at = now(v);
      if (!level.free.count(at.v)) return;
      v = copyIn(at, body, copies, ops);
      brought[v.v] = true;
    };
    for (OpId id : part.body) {
      reads(id, bring);
      for (ValueId v : m_.op(id).operands) strange |= !level.inside(v) && !brought.count(v.v);
      if (strange)
        return fail(Code::kGspmdSharding, m_.loc(m_.op(id).loc),
                    "an operation inside of a manual region reads a whole array; let the value enter through "
                    "@SPMDFullToShardShape");
      m_.op(id).parent = body;
      ops.push_back(id);
    }
    llvm::SmallVector<ValueId, 4> out;
    for (size_t i = 0; i < part.leaves.size(); ++i) {
      ValueId v = m_.op(part.leaves[i]).operands[0];
      bring(v);
      out.push_back(now(v));
      replace(m_.op(part.leaves[i]).results[0], m_.op(made).results[i]);
    }
    ops.push_back(m_.create(body, Opcode::return_, out, {}, loc));
    m_.region(body).ops = std::move(ops);
    return made;
  }

  // ---------------------------------------------------------------- order
  /// The region's list with the new ops in it, each after what it reads.
  llvm::Error order(RegionId r, llvm::ArrayRef<Part> parts, llvm::ArrayRef<OpId> made) {
    std::map<uint32_t, OpId> in;  // op -> the one that took its place
    std::map<uint32_t, uint32_t> last;
    for (size_t p = 0; p < parts.size(); ++p) {
      for (const auto* list : {&parts[p].enters, &parts[p].body, &parts[p].leaves}) {
        for (OpId id : *list) in[id.v] = made[p];
      }
      OpId at = parts[p].enters.empty() ? parts[p].leaves.empty() ? parts[p].body[0] : parts[p].leaves[0] : parts[p].enters.back();
      last[at.v] = 1;
    }
    const std::vector<OpId> before = m_.region(r).ops;
    std::vector<OpId> after;
    std::map<uint32_t, int> state;  // 1: being placed, 2: placed
    llvm::Error error = llvm::Error::success();
    auto place = [&](auto& self, OpId id) -> void {
      if (error || !id.valid() || dropped_.count(id.v) || state[id.v] == 2) return;
      if (state[id.v] == 1) {
        error = fail(Code::kGspmdSharding, m_.loc(m_.op(id).loc), "a manual region whose operands depend on its results");
        return;
      }
      state[id.v] = 1;
      reads(id, [&](ValueId& v) {
        OpId def = m_.value(now(v)).def;
        if (def && m_.op(def).parent == r && def != id) self(self, def);
      });
      state[id.v] = 2;
      after.push_back(id);
    };
    for (OpId id : before) {
      auto moved = in.find(id.v);
      if (moved == in.end()) {
        place(place, id);
      } else if (last.count(id.v)) {
        place(place, moved->second);
      }
    }
    if (error) return error;
    m_.region(r).ops = std::move(after);
    return llvm::Error::success();
  }

  llvm::Error region(RegionId r, const Axes& outer) {
    auto level = classify(r, outer);
    if (!level) return level.takeError();
    auto found = parts(r, outer, *level);
    if (!found) return found.takeError();
    std::vector<OpId> made;
    if (!found->empty()) {
      const hlo::Uses uses(m_);
      uses_known_ = m_.numValues();
      for (const Part& part : *found) {
        if (part.leaves.empty()) {  // nothing comes out
          made.push_back(OpId());
          continue;
        }
        auto op = form(r, part, *level, uses);
        if (!op) return op.takeError();
        made.push_back(*op);
        made_.push_back(*op);
      }
      if (llvm::Error e = order(r, *found, made)) return e;
    }
    const std::vector<OpId> ops = m_.region(r).ops;
    for (OpId id : ops) {
      Axes inner = outer;
      if (const hlo::Attr* a = m_.findAttr(id, AttrKey::manual_axes); a && m_.op(id).opcode == Opcode::sdy_manual_computation)
        inner.append(a->axes.begin(), a->axes.end());
      for (size_t k = 0; k < m_.op(id).regions.size(); ++k) {
        if (llvm::Error e = region(m_.op(id).regions[k], inner)) return e;
      }
    }
    return llvm::Error::success();
  }

  hlo::Module& m_;
  hlo::MeshId mesh_;
  std::vector<OpId> made_;
  std::vector<ValueId> replaced_;
  std::map<uint32_t, bool> dropped_;  // requests that a region's in_shardings say
  size_t uses_known_ = 0;
};

}  // namespace

llvm::Expected<std::vector<OpId>> formManualRegions(hlo::Module& m, hlo::MeshId mesh) { return Former(m, mesh).run(); }

}  // namespace tpu::partition
