// The verifier: structure and scopes by one walk per function, each op by its own rule.
#include "tpu/hlo/verify.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallSet.h"
#include "tpu/hlo/infer.h"
#include "tpu/hlo/sharding_mistakes.h"
#include "tpu/support/diagnostics.h"

namespace tpu::hlo {
namespace {

constexpr int kMaxDepth = 300;
constexpr int64_t kMaxDevices = int64_t{1} << 32;

class Verifier {
 public:
  explicit Verifier(const Module& module)
      : m(module), place_(m.numValues(), kNowhere), placed_(m.numOps()), checked_(m.numShardings()) {}

  llvm::Error run() {
    if (llvm::Error e = checkModule()) return e;
    llvm::Error all = llvm::Error::success();
    for (const Func& func : m.funcs) all = llvm::joinErrors(std::move(all), checkFunc(func));
    if (all) return all;
    return checkRecursion();
  }

 private:
  llvm::Error bad(LocId loc, const llvm::Twine& text) { return fail(Code::kBadStructure, m.loc(loc), text); }

  llvm::Error checkModule() {
    if (m.funcs.empty()) return bad(LocId(), "the program has no function");
    if (m.entry.v >= m.funcs.size()) return bad(LocId(), "the program has no entry function");
    if (m.num_partitions < 1 || m.num_replicas < 1 || m.num_partitions > kMaxDevices / m.num_replicas)
      return bad(LocId(), "the program is for " + llvm::Twine(m.num_partitions) + " partitions and " +
                              llvm::Twine(m.num_replicas) + " replicas");
    llvm::DenseSet<uint32_t> names;
    for (const Func& func : m.funcs) {
      if (m.string(func.name).empty()) return bad(func.loc, "function without a name");
      if (!names.insert(func.name.v).second)
        return bad(func.loc, "function @" + m.string(func.name) + " is defined twice");
    }
    for (const Mesh& mesh : m.meshes)
      for (const MeshAxis& axis : mesh.axes)
        if (axis.size < 1)
          return bad(LocId(), "axis '" + axis.name + "' of mesh '" + mesh.name + "' has no devices");
    return llvm::Error::success();
  }

  // ---------------------------------------------------------------- shardings

  llvm::Error checkAxes(const Mesh& mesh, llvm::ArrayRef<AxisRef> axes, llvm::SmallVectorImpl<AxisRef>& seen,
                        LocId loc) {
    for (const AxisRef& ref : axes) {
      if (ref.axis >= mesh.axes.size())
        return fail(Code::kShardingMisfit, m.loc(loc),
                    "sharding by an axis that mesh '" + mesh.name + "' does not have");
      if (!subAxisDivides(mesh, ref)) return fail(Code::kShardingMisfit, m.loc(loc), badSubAxisText(mesh, ref));
      for (const AxisRef& other : seen) {
        bool apart =
            other.axis != ref.axis || other.pre >= ref.pre * ref.size || ref.pre >= other.pre * other.size;
        if (!apart)
          return fail(Code::kShardingMisfit, m.loc(loc), axisTwiceText(mesh, ref, seen));
      }
      seen.push_back(ref);
    }
    return llvm::Error::success();
  }

  llvm::Error checkSharding(ShardingId id, const Type* type, LocId loc) {
    if (!id) return llvm::Error::success();
    if (id.v >= m.numShardings()) return bad(loc, "sharding id out of range");
    const Sharding& s = m.sharding(id);
    if (!checked_[id.v]) {
      if (s.mesh.v >= m.meshes.size()) return bad(loc, "sharding by an unknown mesh");
      const Mesh& mesh = m.meshes[s.mesh.v];
      llvm::SmallVector<AxisRef, 8> seen;
      for (const DimSharding& dim : s.dims)
        if (auto e = checkAxes(mesh, dim.axes, seen, loc)) return e;
      if (auto e = checkAxes(mesh, s.replicated, seen, loc)) return e;
      if (auto e = checkAxes(mesh, s.unreduced, seen, loc)) return e;
      checked_[id.v] = true;
    }
    bool maximal = m.meshes[s.mesh.v].maximal_device >= 0;
    if (type && type->kind == TypeKind::kTensor && s.dims.size() != type->dims.size() && !maximal)
      return fail(Code::kShardingMisfit, m.loc(loc), shardingRankText(m, s, *type));
    return llvm::Error::success();
  }

  // ---------------------------------------------------------------- functions

  llvm::Error checkPort(const Port& port, TypeId local, LocId loc, llvm::StringRef what) {
    const Type& type = m.type(local);
    const Type& whole = port.global_type ? m.type(port.global_type) : type;
    if (auto e = checkSharding(port.sharding, &whole, loc)) return e;
    if (m.stage != Stage::kSpmd || !port.global_type) return llvm::Error::success();
    Type expected = port.sharding ? localType(m, whole, m.sharding(port.sharding)) : whole;
    if (compatible(expected, type)) return llvm::Error::success();
    return fail(Code::kTypeMismatch, m.loc(loc),
                what + " holds " + typeText(m, type) + " per device, its sharding of " + typeText(m, whole) +
                    " gives " + typeText(m, expected));
  }

  llvm::Error checkFunc(const Func& func) {
    if (func.body.v >= m.numRegions())
      return bad(func.loc, "function @" + m.string(func.name) + " has no body");
    const Region& body = m.region(func.body);
    if (body.parent_op) return bad(func.loc, "body of @" + m.string(func.name) + " lies in an operation");
    if (func.arg_ports.size() != body.args.size() && !func.arg_ports.empty())
      return bad(func.loc, "function @" + m.string(func.name) + " describes " +
                               llvm::Twine(func.arg_ports.size()) + " of " + llvm::Twine(body.args.size()) +
                               " arguments");
    if (func.result_ports.size() != func.result_types.size() && !func.result_ports.empty())
      return bad(func.loc, "function @" + m.string(func.name) + " describes " +
                               llvm::Twine(func.result_ports.size()) + " of " +
                               llvm::Twine(func.result_types.size()) + " results");
    for (size_t i = 0; i < func.arg_ports.size(); ++i) {
      const Port& port = func.arg_ports[i];
      if (port.alias >= static_cast<int>(func.result_types.size()))
        return bad(func.loc, "argument " + llvm::Twine(i) + " aliases result " + llvm::Twine(port.alias) +
                                 " of " + llvm::Twine(func.result_types.size()));
      if (auto e = checkPort(port, m.value(body.args[i]).type, m.value(body.args[i]).loc,
                             "argument " + std::to_string(i)))
        return e;
    }
    for (size_t i = 0; i < func.result_ports.size(); ++i)
      if (auto e =
              checkPort(func.result_ports[i], func.result_types[i], func.loc, "result " + std::to_string(i)))
        return e;
    if (auto e = checkRegion(func.body, OpId(), 0)) return e;
    const Op& last = m.op(body.ops.back());
    bool same = last.operands.size() == func.result_types.size();
    for (size_t i = 0; same && i < last.operands.size(); ++i)
      same = compatible(m.typeOf(last.operands[i]), m.type(func.result_types[i]));
    if (!same)
      return fail(Code::kTypeMismatch, m.loc(last.loc),
                  "function @" + m.string(func.name) + " returns other types than it states");
    return llvm::Error::success();
  }

  llvm::Error checkValue(ValueId id, LocId loc) {
    const Value& value = m.value(id);
    if (value.type.v >= m.numTypes()) return bad(loc, "value without a type");
    return checkSharding(value.sharding, m.stage == Stage::kHlo ? &m.type(value.type) : nullptr, loc);
  }

  llvm::Error checkRegion(RegionId id, OpId parent, int depth) {
    if (depth > kMaxDepth) return bad(parent ? m.op(parent).loc : LocId(), "regions nest too deeply");
    const Region& region = m.region(id);
    LocId where = parent ? m.op(parent).loc : LocId();
    if (region.parent_op != parent)
      return bad(where, "region with another parent than the operation that holds it");
    if (region.ops.empty()) return bad(where, "region without a terminator");
    const size_t mark = defined_.size(), outer_floor = floor_;
    if (parent && isIsolated(m.op(parent).opcode)) floor_ = mark;
    for (uint32_t i = 0; i < region.args.size(); ++i) {
      const Value& arg = m.value(region.args[i]);
      if (arg.region != id || arg.index != i || arg.def)
        return bad(where, "region argument " + llvm::Twine(i) + " belongs elsewhere");
      if (auto e = checkValue(region.args[i], arg.loc)) return e;
      define(region.args[i]);
    }
    for (size_t i = 0; i < region.ops.size(); ++i) {
      bool last = i + 1 == region.ops.size();
      if (auto e = checkOp(region.ops[i], id, last, depth)) return e;
    }
    while (defined_.size() > mark) {
      place_[defined_.back().v] = kNowhere;
      defined_.pop_back();
    }
    floor_ = outer_floor;
    return llvm::Error::success();
  }

  void define(ValueId v) {
    place_[v.v] = defined_.size();
    defined_.push_back(v);
  }

  // Regions that use nothing from around them.
  static bool isIsolated(Opcode op) {
    return op == Opcode::sdy_manual_computation || op == Opcode::sdy_named_computation;
  }

  llvm::Error checkOperand(ValueId v, const Op& op) {
    if (v.v >= place_.size() || place_[v.v] == kNowhere)
      return fail(Code::kUseBeforeDef, m.loc(op.loc), opInfo(op.opcode).mnemonic + ": operand is not defined here");
    if (place_[v.v] < floor_)
      return fail(Code::kUseBeforeDef, m.loc(op.loc),
                  opInfo(op.opcode).mnemonic + ": operand is defined outside of a region that may use nothing from "
                                               "around it; pass it as an operand");
    return llvm::Error::success();
  }

  llvm::Error checkAttr(const Attr& attr, LocId loc) {
    if (attr.kind == AttrKind::kSharding) return checkSharding(attr.sharding, nullptr, loc);
    if (attr.kind == AttrKind::kShardings)
      for (int64_t id : attr.ints)
        if (auto e = checkSharding(ShardingId(static_cast<uint32_t>(id)), nullptr, loc)) return e;
    if (attr.kind == AttrKind::kAxes && attr.mesh) {
      if (attr.mesh.v >= m.meshes.size()) return bad(loc, "axes of an unknown mesh");
      llvm::SmallVector<AxisRef, 8> seen;
      return checkAxes(m.meshes[attr.mesh.v], attr.axes, seen, loc);
    }
    if (attr.kind == AttrKind::kLiteral && attr.literal.v >= m.numLiterals())
      return bad(loc, "constant without its data");
    return llvm::Error::success();
  }

  llvm::Error checkOp(OpId id, RegionId region, bool last, int depth) {
    if (id.v >= m.numOps()) return bad(LocId(), "operation id out of range");
    const Op& op = m.op(id);
    if (op.parent != region || placed_[id.v])
      return bad(op.loc, opInfo(op.opcode).mnemonic + " stands in two places");
    placed_[id.v] = true;
    if (hasTrait(op.opcode, kTerminator) != last)
      return bad(op.loc, last ? "region ends in " + opInfo(op.opcode).mnemonic + ", expected return"
                              : std::string("return in the middle of a region"));
    for (ValueId v : op.operands)
      if (auto e = checkOperand(v, op)) return e;
    for (RegionId nested : op.regions)
      if (auto e = checkRegion(nested, id, depth + 1)) return e;
    for (AttrId attr : op.attrs)
      if (auto e = checkAttr(m.attr(attr), op.loc)) return e;
    for (uint32_t i = 0; i < op.results.size(); ++i) {
      const Value& result = m.value(op.results[i]);
      if (result.def != id || result.index != i || result.region)
        return bad(op.loc, "result " + llvm::Twine(i) + " belongs elsewhere");
      if (auto e = checkValue(op.results[i], op.loc)) return e;
    }
    if (auto e = verifyOp(m, id)) return e;
    for (ValueId result : op.results) define(result);
    if (op.opcode == Opcode::call || op.opcode == Opcode::composite) {
      const AttrKey key = op.opcode == Opcode::call ? AttrKey::callee : AttrKey::decomposition;
      if (const FuncId callee = m.findFunc(m.getString(id, key)))
        calls_.push_back({m.region(region).func, callee, op.loc});
    }
    return llvm::Error::success();
  }

  // ---------------------------------------------------------------- calls

  llvm::Error checkRecursion() {
    std::vector<llvm::SmallVector<size_t, 2>> outgoing(m.funcs.size());
    for (size_t i = 0; i < calls_.size(); ++i)
      if (calls_[i].from.v < outgoing.size()) outgoing[calls_[i].from.v].push_back(i);
    enum : uint8_t { kNew, kOpen, kDone };
    std::vector<uint8_t> state(m.funcs.size(), kNew);
    std::vector<std::pair<size_t, size_t>> stack;  // function, next call
    for (size_t root = 0; root < m.funcs.size(); ++root) {
      if (state[root] != kNew) continue;
      stack.push_back({root, 0});
      state[root] = kOpen;
      while (!stack.empty()) {
        auto& [func, next] = stack.back();
        if (next == outgoing[func].size()) {
          state[func] = kDone;
          stack.pop_back();
          continue;
        }
        const Call& call = calls_[outgoing[func][next++]];
        if (state[call.to.v] == kOpen)
          return fail(Code::kBadCall, m.loc(call.loc),
                      "recursive call of @" + m.string(m.func(call.to).name));
        if (state[call.to.v] == kNew) {
          state[call.to.v] = kOpen;
          stack.push_back({call.to.v, 0});
        }
      }
    }
    return llvm::Error::success();
  }

  struct Call {
    FuncId from, to;
    LocId loc;
  };
  const Module& m;
  static constexpr size_t kNowhere = ~size_t{0};
  std::vector<size_t> place_;     // by value: its place in defined_
  std::vector<ValueId> defined_;  // values in scope, in order
  size_t floor_ = 0;              // those before it lie outside of the innermost isolated region
  std::vector<bool> placed_, checked_;
  std::vector<Call> calls_;
};

}  // namespace

llvm::Error verify(const Module& module) { return Verifier(module).run(); }

}  // namespace tpu::hlo
