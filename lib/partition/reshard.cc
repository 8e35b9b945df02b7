// Explicit reshards: one sweep over the program. For each operation the factors to shard are chosen, operands
// are brought to what that needs, and results to what propagation gave them. After this pass the sharding of
// every operand is exactly what its operation computes with, and every change of sharding is an sdy.reshard
// with a reason.
#include <algorithm>
#include <map>

#include "causes.h"
#include "choose.h"
#include "context.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "tpu/hlo/analysis.h"
#include "tpu/sharding/reducer.h"
#include "tpu/sharding/text.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::RegionId;
using hlo::ShardingId;
using hlo::ValueId;
using sharding::Axes;
using sharding::FactorAxes;
using sharding::OpRule;

namespace {

class Resharder {
 public:
  Resharder(hlo::Module& m, Context& ctx)
      : m_(m), ctx_(ctx), mesh_(ctx.meshOf(m)), chooser_(m, ctx.plans(m)) {}

  llvm::Error run() {
    if (!ctx_.propagated) {
      ctx_.propagated = std::make_unique<Propagated>();
      ctx_.propagated->flow = findFlow(m_);
      ctx_.propagated->free = findFreeValues(m_);
    }
    free_ = ctx_.propagated->free;
    joinSlices(m_);
    sliced_ = wholeWhereLoopsSlice(m_, ctx_);
    lists_.resize(m_.numRegions(), nullptr);
    indexOrigins();
    countUses();
    region(m_.func(m_.entry).body);
    hlo::eliminateDeadCode(m_);
    foldReshardChains(m_, ctx_);
    hlo::eliminateDeadCode(m_);
    return llvm::Error::success();
  }

 private:
  void countUses() {
    uses_ = std::make_unique<std::vector<uint32_t>>(m_.numValues(), 0);
    walkPartitioned(m_, m_.func(m_.entry).body, [&](OpId id) {
      for (ValueId v : m_.op(id).operands) ++(*uses_)[v.v];
      for (RegionId inner : m_.op(id).regions) {
        if (hasPartitionedRegions(m_.op(id).opcode)) continue;
        hlo::walk(m_, inner, [&](OpId k) {
          for (ValueId v : m_.op(k).operands) ++(*uses_)[v.v];
        });
      }
    });
  }

  // ---------------------------------------------------------------- values
  ValueId current(ValueId v) const { return v.v < map_.size() && map_[v.v] ? map_[v.v] : v; }
  void replace(ValueId from, ValueId to) {
    if (map_.size() <= from.v) map_.resize(m_.numValues());
    map_[from.v] = to;
  }
  bool isFree(ValueId v) const { return v.v < free_.size() && free_[v.v]; }
  /// A free value, or one behind constraints: made again in any sharding rather than sent.
  ValueId freeRoot(ValueId v) const {
    while (!isFree(v) && v.v < ctx_.propagated->flow.num_values && m_.value(v).def &&
           m_.op(m_.value(v).def).opcode == Opcode::sdy_sharding_constraint) {
      v = m_.op(m_.value(v).def).operands[0];
    }
    return isFree(v) ? v : ValueId();
  }
  Layout layout(ValueId v) const { return layoutOf(m_, m_.value(v).sharding, m_.typeOf(v).rank()); }
  void setLayout(ValueId v, const Layout& l) { m_.value(v).sharding = internLayout(m_, ctx_.mesh, l); }
  std::vector<OpId>& out(RegionId r) { return *lists_[r.v]; }

  RegionId regionOf(ValueId v) const {
    const hlo::Value& value = m_.value(v);
    return value.def ? m_.op(value.def).parent : value.region;
  }

  /// The value in the wanted layout: itself, an earlier reshard, a copy of a free value, or a new reshard in
  /// `at`.
  ValueId require(ValueId original, const Layout& need, RegionId at, const Cause& cause) {
    ValueId v = current(original);
    if (m_.typeOf(v).kind != hlo::TypeKind::kTensor) return v;
    if (ValueId root = freeRoot(original)) return freeIn(root, need);
    Layout have = layout(v);
    if (have == need) return v;
    ShardingId id = internLayout(m_, ctx_.mesh, need);
    for (RegionId r = at; r; r = parentRegion(r)) {
      auto it = made_.find({v.v, id.v, r.v});
      if (it != made_.end()) return it->second;
    }
    ValueId result = emitReshard(v, have, need, id, at, cause);
    made_[{v.v, id.v, at.v}] = result;
    return result;
  }

  RegionId parentRegion(RegionId r) const {
    OpId op = m_.region(r).parent_op;
    return op ? m_.op(op).parent : RegionId();
  }

  ValueId emitReshard(ValueId v, const Layout& have, const Layout& need, ShardingId id, RegionId at,
                      const Cause& cause) {
    hlo::LocId loc = cause.needed_by ? m_.op(cause.needed_by).loc : cause.asked_at;
    OpId op = m_.create(at, Opcode::sdy_reshard, {v}, {m_.value(v).type}, loc);
    out(at).push_back(op);
    if (cause.code == "constraint") requested_.insert(op.v);
    ValueId result = m_.op(op).results[0];
    m_.value(result).sharding = id;
    m_.setSharding(op, AttrKey::sharding, explicitSharding(need, id));
    hlo::Why why;
    why.op = op;
    why.code = cause.code.str();
    why.needed_by = cause.needed_by;
    why.asked_at = m_.loc(cause.asked_at).str();
    why.before = text(have);
    why.after = text(need);
    why.reason = cause.reason.str();
    why.remove_by = cause.remove_by.str() + annotation(cause, have, need);
    m_.whys.push_back(std::move(why));
    return result;
  }

  /// The cheapest change as text to write and the line to write it at, where one annotation does it.
  std::string annotation(const Cause& cause, const Layout& have, const Layout& need) const {
    llvm::StringRef here = cause.needed_by ? m_.loc(m_.op(cause.needed_by).loc) : llvm::StringRef();
    if (!have.unreduced.empty() || cause.remove_by.empty()) return "";
    if (cause.code == "constraint" || cause.code == "result")
      return here.empty() ? "" : ": write " + text(have) + " at " + here.str();
    llvm::StringRef asked = m_.loc(cause.asked_at);
    if (cause.code == "operand" && !asked.empty()) return ": write " + text(need) + " at " + asked.str();
    return "";
  }

  /// Reshards state the full sharding, also a replicated one.
  ShardingId explicitSharding(const Layout& l, ShardingId id) {
    if (id) return id;
    hlo::Sharding s;
    s.mesh = ctx_.mesh;
    s.dims.resize(l.dims.size());
    return m_.internSharding(s);
  }

  std::string text(const Layout& l) const {
    hlo::Sharding s;
    s.mesh = ctx_.mesh;
    s.dims.resize(l.dims.size());
    for (size_t d = 0; d < l.dims.size(); ++d) s.dims[d].axes = l.dims[d];
    s.unreduced = l.unreduced;
    return sharding::print(mesh_, s);
  }

  /// A copy of a free value's computation in the wanted layout, next to the original.
  ValueId freeIn(ValueId v, const Layout& need) {
    ShardingId id = internLayout(m_, ctx_.mesh, need);
    if (!id) return v;
    auto it = free_made_.find({v.v, id.v});
    if (it != free_made_.end()) return it->second;
    OpId def = m_.value(v).def;
    OpRule rule = sharding::ruleFor(m_, def);
    llvm::SmallVector<hlo::DimSharding, 4> dims(need.dims.size());
    for (size_t d = 0; d < dims.size(); ++d) dims[d].axes = need.dims[d];
    FactorAxes axes;
    bool whole = project(rule, rule.results[0], dims, axes);
    RegionId at = m_.op(def).parent;
    ValueId result;
    if (!whole || Chooser::layoutFor(rule, rule.results[0], axes) != need) {
      result = emitReshard(v, layout(v), need, id, at,
                           {"local", def, m_.op(def).loc, "cut from a value that every device has", ""});
    } else {
      llvm::SmallVector<ValueId, 3> operands;
      for (size_t i = 0; i < m_.op(def).operands.size(); ++i) {
        operands.push_back(freeIn(m_.op(def).operands[i], Chooser::layoutFor(rule, rule.operands[i], axes)));
      }
      OpId copy = m_.create(at, m_.op(def).opcode, operands, {m_.value(v).type}, m_.op(def).loc);
      m_.copyAttrs(def, copy);
      m_.removeAttr(copy, AttrKey::result_shardings);
      m_.removeAttr(copy, AttrKey::mhlo_sharding);
      out(at).push_back(copy);
      result = m_.op(copy).results[0];
      m_.value(result).sharding = id;
      m_.value(result).name = m_.value(v).name;
    }
    free_made_[{v.v, id.v}] = result;
    return result;
  }

  // ---------------------------------------------------------------- regions and ops
  void region(RegionId r) {
    std::vector<OpId> before = std::move(m_.region(r).ops);
    std::vector<OpId> after;
    after.reserve(before.size() + before.size() / 4);
    lists_[r.v] = &after;
    for (OpId id : before) op(id, r);
    m_.region(r).ops = std::move(after);
    lists_[r.v] = nullptr;
  }

  void op(OpId id, RegionId r) {
    switch (m_.op(id).opcode) {
      case Opcode::while_:
        return whileOp(id, r);
      case Opcode::if_:
      case Opcode::case_:
        return branchOp(id, r);
      case Opcode::sdy_manual_computation:
        return manualOp(id, r);
      case Opcode::return_:
        return returnOp(id, r);
      case Opcode::sdy_sharding_constraint:
      case Opcode::sdy_reshard:
      case Opcode::sdy_propagation_barrier:
        return requestOp(id, r);
      case Opcode::sdy_sharding_group:
        return;
      case Opcode::optimization_barrier:
        return barrierOp(id, r);
      default:
        return plainOp(id, r);
    }
  }

  /// A request of the user: the value is wanted in the result's layout.
  void requestOp(OpId id, RegionId r) {
    ValueId operand = m_.op(id).operands[0], result = m_.op(id).results[0];
    ValueId v = require(operand, layout(result), r,
                        {"constraint", id, m_.op(id).loc, "the program asks for another sharding here",
                         "let the value keep the sharding it has, or give its producer this one"});
    replace(result, v);
  }

  /// Each value passes through in its own sharding.
  void barrierOp(OpId id, RegionId r) {
    for (size_t i = 0; i < m_.op(id).operands.size(); ++i) {
      ValueId v =
          require(m_.op(id).operands[i], layout(m_.op(id).results[i]), r,
                  {"result", id, m_.op(id).loc, "the value is used in another sharding behind this barrier",
                   "give it that sharding before"});
      m_.op(id).operands[i] = v;
    }
    out(r).push_back(id);
  }

  void plainOp(OpId id, RegionId r) {
    size_t n = m_.op(id).operands.size(), k = m_.op(id).results.size();
    bool all_free = k > 0;
    for (size_t i = 0; i < k; ++i) all_free &= isFree(m_.op(id).results[i]);
    if (all_free) {  // the replicated original; copies in other shardings are made on demand
      for (size_t i = 0; i < k; ++i) m_.value(m_.op(id).results[i]).sharding = ShardingId();
      out(r).push_back(id);
      return;
    }
    if (sumOfPartials(id, r)) return;
    const OpRule* chosen = &ruleOf(id);
    Choice choice = chooseBy(id, *chosen);
    OpRule other;
    for (int variant = 1; variant < sharding::numVariants(m_.op(id).opcode) && choice.cost > 0; ++variant) {
      OpRule candidate = sharding::ruleFor(m_, id, variant);
      Choice c = chooseBy(id, candidate);
      if (c.cost >= choice.cost) continue;
      choice = std::move(c);
      other = std::move(candidate);
      chosen = &other;
    }
    const OpRule& rule = *chosen;
    if (asksAbout(id)) explainOptions(id);
    Axes partial = Chooser::partialAxes(rule, choice.axes);
    bool joint = k > 1;  // several results are combined together, by the op's own expansion
    for (size_t i = 0; i < n; ++i) {
      Layout need = Chooser::layoutFor(rule, rule.operands[i], choice.axes);
      ValueId v = require(m_.op(id).operands[i], need, r,
                          operandCause(m_, id, originOf(m_.op(id).operands[i]), rule.note));
      m_.op(id).operands[i] = v;
    }
    m_.removeAttr(id, AttrKey::result_shardings);
    m_.removeAttr(id, AttrKey::mhlo_sharding);
    out(r).push_back(id);
    for (size_t i = 0; i < k; ++i) {
      ValueId v = m_.op(id).results[i];
      if (m_.typeOf(v).kind != hlo::TypeKind::kTensor) continue;
      Layout wanted = layout(v), made = Chooser::layoutFor(rule, rule.results[i], choice.axes);
      if (!joint) made.unreduced = partial;
      setLayout(v, made);
      if (made == wanted) continue;
      ShardingId want_id = internLayout(m_, ctx_.mesh, wanted);
      replace(v, emitReshard(v, made, wanted, want_id, r,
                             made.unreduced.empty() ? resultCause(id, originOf(m_.op(id).results[i]))
                                                    : partialCause(m_, id, contractedAt(id), scatters(made, wanted))));
    }
  }

  bool asksAbout(OpId id) const { return ctx_.explain_value && m_.value(ctx_.explain_value).def == id; }

  /// Every way in which the operation may be divided, with what it puts on the wires.
  void explainOptions(OpId id) {
    llvm::raw_string_ostream os(ctx_.explanation);
    os << "  ways to divide " << hlo::opInfo(m_.op(id).opcode).mnemonic << ", cheapest first:\n";
    std::vector<std::pair<double, std::string>> rows;
    for (int variant = 0; variant < sharding::numVariants(m_.op(id).opcode); ++variant) {
      OpRule rule = sharding::ruleFor(m_, id, variant);
      std::vector<Choice> options;
      chooser_.collect = &options;
      chooseBy(id, rule);
      chooser_.collect = nullptr;
      for (const Choice& c : options) {
        std::string row;
        for (size_t i = 0; i < m_.op(id).operands.size(); ++i)
          row += (i ? ", " : "") + text(Chooser::layoutFor(rule, rule.operands[i], c.axes));
        row += " ->";
        for (size_t i = 0; i < m_.op(id).results.size(); ++i) {
          Layout made = Chooser::layoutFor(rule, rule.results[i], c.axes);
          made.unreduced = Chooser::partialAxes(rule, c.axes);
          row += (i ? ", " : " ") + text(made);
        }
        rows.push_back({c.wire_bytes, "    " + std::to_string(static_cast<int64_t>(c.wire_bytes)) + " bytes sent per device: " + row});
      }
    }
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    for (const auto& [bytes, row] : rows) os << row << '\n';
  }

  Choice chooseBy(OpId id, const OpRule& rule) {
    size_t n = m_.op(id).operands.size(), k = m_.op(id).results.size();
    llvm::SmallVector<TensorView, 4> operands(n), results(k);
    for (size_t i = 0; i < n; ++i) {
      ValueId original = m_.op(id).operands[i], v = current(original);
      operands[i] = {&rule.operands[i], m_.typeOf(v).dims, bits(v), layout(v), freeRoot(original).valid(), {}};
      if (ValueId source = sourceOf(original)) operands[i].source = layout(source);
    }
    for (size_t i = 0; i < k; ++i) {
      ValueId v = m_.op(id).results[i];
      bool unread = k > 1 && v.v < uses_->size() && (*uses_)[v.v] == 0;
      results[i] = {&rule.results[i], m_.typeOf(v).dims, bits(v), layout(v), unread, {}};
    }
    return chooser_.choose(id, rule, operands, results);
  }

  /// What a value was resharded from, where nothing else reads it and no user asked for the change.
  ValueId sourceOf(ValueId original) const {
    if (original.v >= uses_->size() || (*uses_)[original.v] != 1) return ValueId();
    ValueId v = current(original);
    OpId def = m_.value(v).def;
    if (v == original || !def || m_.op(def).opcode != Opcode::sdy_reshard || requested_.contains(def.v)) return ValueId();
    return m_.op(def).operands[0];
  }

  /// The partial value from which a value was just reduced, where nothing else reads the reduced one.
  ValueId partialOf(ValueId original) const {
    if (original.v >= uses_->size() || (*uses_)[original.v] != 1) return ValueId();
    ValueId v = current(original);
    OpId def = m_.value(v).def;
    if (!def || m_.op(def).opcode != Opcode::sdy_reshard) return ValueId();
    ValueId source = m_.op(def).operands[0];
    ShardingId s = m_.value(source).sharding;
    return s && !m_.sharding(s).unreduced.empty() && isSum(source) ? source : ValueId();
  }

  bool isSum(ValueId v) const {
    const hlo::Op& op = m_.op(m_.value(v).def);
    switch (op.opcode) {
      case Opcode::dot_general:
      case Opcode::dot:
      case Opcode::convolution:
      case Opcode::add:
      case Opcode::subtract:
        return true;
      case Opcode::reduce:
      case Opcode::scatter:
        return sharding::reducerOf(m_, op.regions[0]) == Opcode::add;
      default:
        return false;
    }
  }

  /// A partial sum that is wanted sharded over all of its axes.
  static bool scatters(const Layout& made, const Layout& wanted) {
    return llvm::all_of(made.unreduced, [&](const hlo::AxisRef& a) {
      return llvm::any_of(wanted.dims, [&](const Axes& d) { return sharding::overlaps(a, d); });
    });
  }

  /// a + b of two partial sums over the same axes is one partial sum: it is reduced once.
  bool sumOfPartials(OpId id, RegionId r) {
    Opcode opcode = m_.op(id).opcode;
    if (opcode != Opcode::add && opcode != Opcode::subtract) return false;
    ValueId a = partialOf(m_.op(id).operands[0]), b = partialOf(m_.op(id).operands[1]);
    if (!a || !b || m_.op(id).operands[0] == m_.op(id).operands[1] || layout(a) != layout(b)) return false;
    ValueId result = m_.op(id).results[0];
    Layout made = layout(a), wanted = layout(result);
    m_.op(id).operands[0] = a;
    m_.op(id).operands[1] = b;
    out(r).push_back(id);
    setLayout(result, made);
    OpId first = m_.value(a).def;
    replace(result,
            emitReshard(result, made, wanted, internLayout(m_, ctx_.mesh, wanted), r,
                        {"contract-dim", id, contractedAt(first), "the sum of partial results, reduced once",
                         scatters(made, wanted) ? "leave the contracted dimensions whole"
                                                : "shard the result over the same axes for a reduce_scatter"}));
    return true;
  }

  int bits(ValueId v) const { return elementBits(m_.typeOf(v).element); }

  const OpRule& ruleOf(OpId id) {
    if (id.v < ctx_.propagated->rules.size() && !ctx_.propagated->rules[id.v].operands.empty())
      return ctx_.propagated->rules[id.v];
    scratch_ = sharding::ruleFor(m_, id);
    return scratch_;
  }

  /// Who asked for the sharding of the first sharded operand.
  hlo::LocId contractedAt(OpId id) {
    for (ValueId v : m_.op(id).operands) {
      if (m_.value(v).sharding) return originOf(v);
    }
    return m_.op(id).loc;
  }

  // ---------------------------------------------------------------- control flow
  void requireOperands(OpId id, RegionId r, llvm::ArrayRef<Layout> needs, const Cause& cause) {
    for (size_t i = 0; i < needs.size(); ++i) {
      ValueId v = require(m_.op(id).operands[i], needs[i], r, cause);
      m_.op(id).operands[i] = v;
    }
  }

  void whileOp(OpId id, RegionId r) {
    RegionId cond = m_.op(id).regions[0], body = m_.op(id).regions[1];
    llvm::SmallVector<Layout, 8> carried;
    for (size_t i = 0; i < m_.op(id).results.size(); ++i) {
      ValueId arg = m_.region(body).args[i];
      carried.push_back(layout(arg));
      m_.value(m_.region(cond).args[i]).sharding = m_.value(arg).sharding;
      m_.value(m_.op(id).results[i]).sharding = m_.value(arg).sharding;
    }
    for (size_t i = 0; i < carried.size(); ++i) {
      const Cause cause = llvm::is_contained(sliced_, m_.region(body).args[i])
                              ? Cause{"loop-slices", id, m_.op(id).loc,
                                      "the loop reads it slice by slice along a sharded dimension, and once as a whole costs less "
                                      "than every slice",
                                      "shard another dimension of it"}
                              : Cause{"loop-carried", id, m_.op(id).loc, "the loop carries this value in another sharding",
                                      "give the initial value the sharding that the loop carries"};
      m_.op(id).operands[i] = require(m_.op(id).operands[i], carried[i], r, cause);
    }
    returns_.push_back({});
    region(cond);
    returns_.back() = std::move(carried);
    region(body);
    returns_.pop_back();
    out(r).push_back(id);
  }

  void branchOp(OpId id, RegionId r) {
    ValueId index = require(m_.op(id).operands[0], Layout{}, r, {});
    m_.op(id).operands[0] = index;
    llvm::SmallVector<Layout, 8> results;
    for (ValueId v : m_.op(id).results) results.push_back(layout(v));
    for (size_t b = 0; b < m_.op(id).regions.size(); ++b) {
      returns_.push_back(results);
      region(m_.op(id).regions[b]);
      returns_.pop_back();
    }
    out(r).push_back(id);
  }

  /// Borders of a manual region: outside a value leads with the manual axes, inside they are gone.
  void manualOp(OpId id, RegionId r) {
    RegionId body = m_.op(id).regions[0];
    llvm::SmallVector<Layout, 8> needs, results;
    for (const Edge* e : manualEdges(id, true)) needs.push_back(withPrefix(layout(ValueId(e->owner)), *e));
    requireOperands(
        id, r, needs,
        {"manual-region", id, m_.op(id).loc, "the manual region wants this operand in its own sharding",
         "give the operand the in_sharding of the region"});
    for (const Edge* e : manualEdges(id, false))
      results.push_back(withoutPrefix(layout(ValueId(e->owner)), *e));
    returns_.push_back(std::move(results));
    region(body);
    returns_.pop_back();
    out(r).push_back(id);
  }

  llvm::SmallVector<const Edge*, 8> manualEdges(OpId id, bool enters) const {
    llvm::SmallVector<const Edge*, 8> out;
    for (const Edge& e : ctx_.propagated->flow.edges) {
      if (e.manual && e.op == id && e.enters == enters) out.push_back(&e);
    }
    return out;
  }
  static Layout withPrefix(Layout l, const Edge& e) {
    for (size_t d = 0; d < l.dims.size(); ++d) l.dims[d] = sharding::concat(e.prefix[d], l.dims[d]);
    return l;
  }
  static Layout withoutPrefix(Layout l, const Edge& e) {
    for (size_t d = 0; d < l.dims.size(); ++d) l.dims[d] = sharding::dropPrefix(l.dims[d], e.prefix[d]);
    return l;
  }

  void returnOp(OpId id, RegionId r) {
    OpId parent = m_.region(r).parent_op;
    if (!parent) {
      const hlo::Func& entry = m_.func(m_.entry);
      for (size_t i = 0; i < m_.op(id).operands.size(); ++i) {
        ShardingId want = entry.result_ports[i].sharding;
        Layout need = layoutOf(m_, want, m_.type(entry.result_types[i]).rank());
        ValueId v =
            require(m_.op(id).operands[i], need, r,
                    {"result", id, m_.op(id).loc, "the program's result is asked for in this sharding",
                     "ask for the sharding that the value has"});
        m_.op(id).operands[i] = v;
      }
    } else {
      const llvm::SmallVector<Layout, 8> needs = returns_.back();
      for (size_t i = 0; i < m_.op(id).operands.size(); ++i) {
        Layout need = i < needs.size() ? needs[i] : Layout{};
        need.dims.resize(m_.typeOf(m_.op(id).operands[i]).rank());
        ValueId v = require(
            m_.op(id).operands[i], need, r,
            {"region-result", parent, m_.op(parent).loc, "all paths must yield this value in one sharding",
             "give the value that this path yields the same sharding as the others"});
        m_.op(id).operands[i] = v;
      }
    }
    out(r).push_back(id);
  }

  // ---------------------------------------------------------------- reasons
  void indexOrigins() {
    for (const Step& s : ctx_.propagated->steps) origin_.try_emplace(s.slot, s.from);
  }
  /// Location of the request from which a value's sharding came.
  hlo::LocId originOf(ValueId v) {
    if (v.v >= ctx_.propagated->flow.owner.size()) return m_.value(v).loc;
    Slot s = ctx_.propagated->flow.owner[v.v];
    for (int hops = 0; hops < 100000; ++hops) {
      auto it = origin_.find(s);
      if (it == origin_.end()) break;
      s = it->second;
    }
    if (s >= ctx_.propagated->flow.num_values) return m_.func(m_.entry).loc;
    return m_.value(ValueId(s)).loc;
  }

  struct Key {
    uint32_t value, sharding, region;
    auto operator<=>(const Key&) const = default;
  };

  hlo::Module& m_;
  Context& ctx_;
  const hlo::Mesh mesh_;
  Chooser chooser_;
  std::vector<bool> free_;
  std::vector<ValueId> map_;
  std::vector<std::vector<OpId>*> lists_;  // by region: the list being built
  std::map<Key, ValueId> made_;
  std::map<std::pair<uint32_t, uint32_t>, ValueId> free_made_;
  std::vector<llvm::SmallVector<Layout, 8>> returns_;
  llvm::DenseMap<Slot, Slot> origin_;
  OpRule scratch_;
  llvm::DenseSet<uint32_t> requested_;  // reshards that the user asked for: their ops stay on either side
  std::unique_ptr<std::vector<uint32_t>> uses_;
  std::vector<ValueId> sliced_;  // body arguments that loops read slice by slice
};

}  // namespace

llvm::Error insertReshards(hlo::Module& m, Context& ctx) { return Resharder(m, ctx).run(); }

}  // namespace tpu::partition
