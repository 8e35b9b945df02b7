// Checks of collectives. Whether devices agree on a condition is decided by the mesh axes along which values
// vary: an argument varies along the axes of its sharding, partition_id along all, an all_reduce or
// all_gather takes its axes away.
#include "check.h"

#include "device_value.h"
#include "llvm/ADT/STLExtras.h"
#include "tpu/hlo/analysis.h"
#include "tpu/sharding/axes.h"
#include "tpu/sharding/text.h"
#include "tpu/support/units.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::RegionId;
using hlo::ValueId;

namespace {

class Checker {
 public:
  explicit Checker(const hlo::Module& m) : m_(m), devices_(m.num_partitions * m.num_replicas) {
    for (const hlo::Mesh& mesh : m.meshes) {
      if (mesh.numDevices() == devices_ && (!mesh_ || mesh.axes.size() > mesh_->axes.size())) mesh_ = &mesh;
    }
    all_ = mesh_ ? (uint64_t{1} << mesh_->axes.size()) - 1 : 1;
    varies_.assign(m.numValues(), 0);
    joins_.assign(m.numOps(), false);
    for (const hlo::Why& w : m.whys)
      joins_[w.op.v] = w.code == "contract-dim" || w.code == "reduce-dim" || w.code == "scatter-dim";
  }

  std::vector<Diagnostic> run() {
    const hlo::Func& entry = m_.func(m_.entry);
    for (size_t i = 0; i < m_.region(entry.body).args.size(); ++i) {
      varies_[m_.region(entry.body).args[i].v] = axesOf(entry.arg_ports[i].sharding);
    }
    region(entry.body, 0);
    return std::move(found_);
  }

 private:
  struct Guard {
    OpId op;
    int64_t branch = 0;  // of a loop: nothing
  };

  uint64_t bits(llvm::ArrayRef<hlo::AxisRef> axes) const {
    uint64_t b = 0;
    for (const hlo::AxisRef& a : axes) b |= uint64_t{1} << a.axis;
    return b;
  }
  uint64_t axesOf(hlo::ShardingId id) const {
    if (!id) return 0;
    uint64_t b = 0;
    for (const hlo::DimSharding& d : m_.sharding(id).dims) b |= bits(d.axes);
    return b | bits(m_.sharding(id).unreduced);
  }
  /// Axes that the group of a collective spans, and those of which it spans the whole.
  uint64_t groupAxes(OpId id, uint64_t& whole) const {
    whole = 0;
    llvm::SmallVector<hlo::AxisRef, 2> axes;
    if (const hlo::Attr* a = m_.findAttr(id, AttrKey::axes)) {
      axes = a->axes;
    } else if (const hlo::Attr* g = m_.findAttr(id, AttrKey::replica_groups)) {
      sharding::Axes list;
      if (!mesh_ || !sharding::axesOfGroups(*mesh_, g->groups, list)) return all_;
      axes = list;
    } else {
      return all_;
    }
    for (const hlo::AxisRef& a : axes) {
      if (mesh_ && a.axis < mesh_->axes.size() && sharding::isFull(*mesh_, a)) whole |= uint64_t{1} << a.axis;
    }
    return bits(axes);
  }

  void report(Code code, OpId id, const llvm::Twine& text, ExitStatus exit) {
    Diagnostic d;
    d.code = code;
    d.loc = m_.loc(m_.op(id).loc).str();
    d.text = text.str();
    d.exit = exit;
    found_.push_back(std::move(d));
  }

  /// `control`: axes along which some condition around here varies.
  void region(RegionId r, uint64_t control) {
    for (OpId id : m_.region(r).ops) op(id, control);
  }

  uint64_t operandsVary(OpId id) const {
    uint64_t v = 0;
    for (ValueId x : m_.op(id).operands) v |= varies_[x.v];
    return v;
  }

  void op(OpId id, uint64_t control) {
    const hlo::Op& op = m_.op(id);
    uint64_t v = operandsVary(id);
    switch (op.opcode) {
      case Opcode::while_:
        return whileOp(id, control);
      case Opcode::if_:
      case Opcode::case_:
        return branchOp(id, control);
      case Opcode::partition_id:
        v = all_;
        break;
      case Opcode::divide:
      case Opcode::remainder:
        v = coordinateAxes(id, v);
        break;
      default:
        break;
    }
    if (hlo::hasTrait(op.opcode, hlo::kCollective)) {
      collective(id);
      uint64_t whole, group = groupAxes(id, whole);
      if (uint64_t bad = control & group) {
        report(Code::kDivergentCollective, id,
               hlo::opInfo(op.opcode).mnemonic + " over " + names(group) +
                   " under a condition that differs along " + names(bad) + who(id, group, bad),
               ExitStatus::kHangs);
      }
      reducer(id);
      if (op.opcode == Opcode::all_reduce || op.opcode == Opcode::all_gather ||
          op.opcode == Opcode::cross_replica_sum) {
        v &= ~whole;
      } else {
        v |= group;
      }
    }
    for (ValueId x : op.results) varies_[x.v] |= v;
  }

  /// The reducer of a collective that joins parts must be the one that made the parts.
  void reducer(OpId id) {
    if (!joins_[id.v] || m_.op(id).regions.empty()) return;
    auto across = hlo::combinerOf(m_, m_.op(id).regions[0]);
    ValueId v = m_.op(id).operands[0];
    while (m_.value(v).def && (m_.op(m_.value(v).def).opcode == Opcode::pad || m_.op(m_.value(v).def).opcode == Opcode::slice))
      v = m_.op(m_.value(v).def).operands[0];
    OpId def = m_.value(v).def;
    if (!def || !across) return;
    std::optional<Opcode> local;
    switch (m_.op(def).opcode) {
      case Opcode::dot_general:
      case Opcode::dot:
      case Opcode::convolution:
        local = Opcode::add;
        break;
      case Opcode::reduce:
      case Opcode::scatter:
        local = hlo::combinerOf(m_, m_.op(def).regions[0]);
        break;
      default:
        return;
    }
    if (!local || *local == *across) return;
    report(Code::kWrongReducer, id,
           "parts of " + hlo::opInfo(*local).mnemonic + " are joined by " + hlo::opInfo(*across).mnemonic + " across devices",
           ExitStatus::kRefused);
  }

  /// Two devices of a group that a branch sends different ways or a loop holds differently long, where that follows
  /// from the device's number; else two whose data decide.
  std::string who(OpId collective, uint64_t group, uint64_t bad) const {
    for (size_t g = guards_.size(); g-- > 0;) {
      const Guard& guard = guards_[g];
      bool loop = m_.op(guard.op).opcode == Opcode::while_;
      std::vector<int64_t> way(devices_);
      bool known = true;
      for (int64_t d = 0; known && d < devices_; ++d) {
        auto v = loop ? tripsOn(guard.op, d) : valueOn(m_, m_.op(guard.op).operands[0], d);
        known = v.has_value();
        if (known) way[d] = loop ? *v : branchOf(guard.op, *v);
      }
      if (!known) continue;
      for (int64_t a = 0; a < devices_; ++a) {
        for (int64_t b = 0; b < devices_; ++b) {
          if (way[b] == way[a] || !sameGroup(a, b, group)) continue;
          if (loop)
            return ": device " + std::to_string(a) + " makes " + plural(way[a], "trip") + " of the loop at " +
                   m_.loc(m_.op(guard.op).loc).str() + ", device " + std::to_string(b) + " makes " + std::to_string(way[b]);
          if (way[a] != guard.branch) continue;
          return ": device " + std::to_string(a) + " meets it, device " + std::to_string(b) + " " + instead(collective, guard, way[b]);
        }
      }
    }
    for (int64_t d = 1; d < devices_; ++d) {
      if (!sameGroup(0, d, group & bad)) continue;
      return ": devices 0 and " + std::to_string(d) + " may decide differently at " +
             (guards_.empty() ? "the condition" : m_.loc(m_.op(guards_.back().op).loc).str());
    }
    return "";
  }

  /// Trips of a loop that counts one value up or down to a bound, both following from the device's number.
  std::optional<int64_t> tripsOn(OpId loop, int64_t device) const {
    const hlo::Op& op = m_.op(loop);
    const hlo::Region &cond = m_.region(op.regions[0]), &body = m_.region(op.regions[1]);
    OpId test = m_.value(m_.op(cond.ops.back()).operands[0]).def;
    if (!test || m_.op(test).opcode != Opcode::compare) return std::nullopt;
    const hlo::Op& ret = m_.op(body.ops.back());
    struct Side {
      int64_t now = 0, step = 0;
    };
    auto side = [&](ValueId v) -> std::optional<Side> {
      size_t i = llvm::find(cond.args, v) - cond.args.begin();
      auto start = valueOn(m_, i < cond.args.size() ? op.operands[i] : v, device);
      if (!start) return std::nullopt;
      if (i == cond.args.size() || ret.operands[i] == body.args[i]) return Side{*start, 0};
      OpId next = m_.value(ret.operands[i]).def;
      if (!next || (m_.op(next).opcode != Opcode::add && m_.op(next).opcode != Opcode::subtract)) return std::nullopt;
      bool plus = m_.op(next).opcode == Opcode::add, first = m_.op(next).operands[0] == body.args[i];
      if (!first && !(plus && m_.op(next).operands[1] == body.args[i])) return std::nullopt;
      auto by = valueOn(m_, m_.op(next).operands[first ? 1 : 0], device);
      if (!by) return std::nullopt;
      return Side{*start, plus ? *by : -*by};
    };
    auto a = side(m_.op(test).operands[0]), b = side(m_.op(test).operands[1]);
    if (!a || !b) return std::nullopt;
    for (int64_t trips = 0; trips < 1 << 16; ++trips) {
      if (!compares(m_, test, a->now, b->now)) return trips;
      a->now += a->step;
      b->now += b->step;
    }
    return std::nullopt;
  }

  int64_t branchOf(OpId op, int64_t value) const {
    int64_t n = static_cast<int64_t>(m_.op(op).regions.size());
    if (m_.op(op).opcode == Opcode::if_) return value != 0 ? 0 : 1;
    return value < 0 || value >= n ? n - 1 : value;
  }

  bool sameGroup(int64_t a, int64_t b, uint64_t group) const {
    if (!mesh_) return true;
    for (uint32_t x = 0; x < mesh_->axes.size(); ++x) {
      sharding::AxisRef axis = sharding::fullAxis(*mesh_, x);
      if (!(group >> x & 1) && sharding::coordinate(*mesh_, axis, a) != sharding::coordinate(*mesh_, axis, b)) return false;
    }
    return true;
  }

  /// What the other branch has in the place of this collective.
  std::string instead(OpId collective, const Guard& guard, int64_t other) const {
    std::vector<OpId> mine, theirs;
    auto list = [&](int64_t branch, std::vector<OpId>& out) {
      hlo::walk(m_, m_.op(guard.op).regions[branch], [&](OpId id) {
        if (hlo::hasTrait(m_.op(id).opcode, hlo::kCollective)) out.push_back(id);
      });
    };
    list(guard.branch, mine);
    list(other, theirs);
    size_t at = llvm::find(mine, collective) - mine.begin();
    if (at >= theirs.size()) return "does not";
    const hlo::Op& op = m_.op(theirs[at]);
    return "meets " + hlo::opInfo(op.opcode).mnemonic.str() + " at " + m_.loc(op.loc).str() + " in its place";
  }

  std::string names(uint64_t b) const {
    if (!mesh_) return "all devices";
    std::string out;
    for (size_t a = 0; a < mesh_->axes.size(); ++a) {
      if (b >> a & 1) out += (out.empty() ? "" : ",") + mesh_->axes[a].name;
    }
    return out;
  }

  /// partition_id / s % n is a coordinate along the axes whose strides lie in [s, s * n).
  uint64_t coordinateAxes(OpId id, uint64_t otherwise) const {
    int64_t low = 1, high = devices_;
    ValueId v = m_.op(id).results[0];
    llvm::SmallVector<std::pair<Opcode, int64_t>, 4> chain;
    while (m_.value(v).def) {
      const hlo::Op& op = m_.op(m_.value(v).def);
      if (op.opcode == Opcode::partition_id) break;
      if (op.opcode != Opcode::divide && op.opcode != Opcode::remainder) return otherwise;
      auto n = hlo::constantInt(m_, op.operands[1]);
      if (!n || *n <= 0) return otherwise;
      chain.push_back({op.opcode, *n});
      v = op.operands[0];
    }
    if (!m_.value(v).def || !mesh_) return otherwise;
    for (size_t i = chain.size(); i-- > 0;) {
      if (chain[i].first == Opcode::divide)
        low *= chain[i].second;
      else
        high = std::min(high, low * chain[i].second);
    }
    uint64_t b = 0;
    for (uint32_t a = 0; a < mesh_->axes.size(); ++a) {
      int64_t s = sharding::stride(*mesh_, sharding::fullAxis(*mesh_, a));
      if (mesh_->axes[a].size > 1 && s < high && s * mesh_->axes[a].size > low) b |= uint64_t{1} << a;
    }
    return b;
  }

  void whileOp(OpId id, uint64_t control) {
    const hlo::Op& op = m_.op(id);
    const hlo::Region &cond = m_.region(op.regions[0]), &body = m_.region(op.regions[1]);
    size_t n = op.results.size();
    std::vector<uint64_t> carried(n);
    for (size_t i = 0; i < n; ++i) carried[i] = varies_[op.operands[i].v];
    // Fixed point: what varies only grows. Findings of the trial rounds are dropped.
    uint64_t pred = 0;
    size_t before = found_.size();
    guards_.push_back({id});
    for (bool again = true; again;) {
      again = false;
      found_.resize(before);
      for (size_t i = 0; i < n; ++i) varies_[cond.args[i].v] = varies_[body.args[i].v] = carried[i];
      region(op.regions[0], control | pred);
      uint64_t p = varies_[m_.op(cond.ops.back()).operands[0].v];
      region(op.regions[1], control | pred | p);
      again |= (p | pred) != pred;
      pred |= p;
      const hlo::Op& ret = m_.op(body.ops.back());
      for (size_t i = 0; i < n; ++i) {
        uint64_t next = carried[i] | varies_[ret.operands[i].v] | pred;
        again |= next != carried[i];
        carried[i] = next;
      }
    }
    guards_.pop_back();
    for (size_t i = 0; i < n; ++i) varies_[op.results[i].v] = carried[i];
  }

  void branchOp(OpId id, uint64_t control) {
    const hlo::Op& op = m_.op(id);
    uint64_t pred = varies_[op.operands[0].v];
    int64_t branch = 0;
    for (RegionId r : op.regions) {
      guards_.push_back({id, branch++});
      region(r, control | pred);
      guards_.pop_back();
      const hlo::Op& ret = m_.op(m_.region(r).ops.back());
      for (size_t i = 0; i < op.results.size(); ++i)
        varies_[op.results[i].v] |= pred | varies_[ret.operands[i].v];
    }
  }

  void collective(OpId id) {
    if (const hlo::Attr* g = m_.findAttr(id, AttrKey::replica_groups)) groups(id, g->groups);
    const hlo::Attr* p = m_.findAttr(id, AttrKey::source_target_pairs);
    if (!p) return;
    const hlo::Attr* axes = m_.findAttr(id, AttrKey::axes);
    int64_t n = axes ? sharding::product(axes->axes) : devices_;
    std::vector<int64_t> from(n, -1), to(n, -1);
    for (int64_t i = 0; i < p->groups.rows; ++i) {
      int64_t s = p->groups.ids[2 * i], t = p->groups.ids[2 * i + 1];
      if (s < 0 || s >= n || t < 0 || t >= n) {
        report(Code::kBadPermute, id,
               "pair (" + llvm::Twine(s) + ", " + llvm::Twine(t) + ") names a device beyond " +
                   llvm::Twine(n - 1),
               ExitStatus::kRefused);
      } else if (from[s] >= 0) {
        report(
            Code::kBadPermute, id,
            "device " + llvm::Twine(s) + " sends to both " + llvm::Twine(from[s]) + " and " + llvm::Twine(t),
            ExitStatus::kRefused);
      } else if (to[t] >= 0) {
        report(Code::kBadPermute, id,
               "device " + llvm::Twine(t) + " receives from both " + llvm::Twine(to[t]) + " and " +
                   llvm::Twine(s),
               ExitStatus::kRefused);
      } else {
        from[s] = t;
        to[t] = s;
      }
    }
  }

  void groups(OpId id, const hlo::Groups& g) {
    if (g.rows == 0 || g.cols == 0) return;
    std::vector<bool> seen(devices_, false);
    int64_t count = 0;
    for (int64_t d : g.ids) {
      if (d == -1) continue;
      if (d < 0 || d >= devices_)
        return report(Code::kBadGroups, id, "device " + llvm::Twine(d) + " of " + llvm::Twine(devices_),
                      ExitStatus::kRefused);
      if (seen[d])
        return report(Code::kBadGroups, id, "device " + llvm::Twine(d) + " stands in two groups",
                      ExitStatus::kRefused);
      seen[d] = true;
      ++count;
    }
    if (count == devices_) return;
    int64_t missing = 0;
    while (seen[missing]) ++missing;
    std::string left;
    for (int64_t d = missing, named = 0; d < devices_; ++d) {
      if (!seen[d] && ++named <= 8) left += (left.empty() ? "" : ", ") + std::to_string(d);
      if (named == 9) left += ", ...";
      if (named > 8) break;
    }
    report(Code::kBadGroups, id,
           "device " + llvm::Twine(missing) + " stands in no group: the others would wait for it or it for them; name " +
               left + " too",
           ExitStatus::kHangs);
  }

  const hlo::Module& m_;
  int64_t devices_;
  const hlo::Mesh* mesh_ = nullptr;
  uint64_t all_ = 0;
  std::vector<uint64_t> varies_;  // value -> axes along which it may differ
  std::vector<Diagnostic> found_;
  std::vector<Guard> guards_;  // branches around the op looked at
  std::vector<bool> joins_;    // op -> a collective that joins parts of its operand
};

}  // namespace

std::vector<Diagnostic> checkCollectives(const hlo::Module& m) { return Checker(m).run(); }

}  // namespace tpu::partition
