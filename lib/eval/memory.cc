// How much memory a program needs on the evaluator, from its types alone: regions are walked as the interpreter
// runs them, values are dropped at their last use, an op that may write over an operand that dies is taken to do
// so. What is not known before the run (shapes that values decide, which branch is taken) counts as little as it
// can, so the answer is a lower bound.
#include <algorithm>
#include <map>

#include "tpu/eval/evaluate.h"
#include "tpu/hlo/document.h"
#include "tpu/hlo/infer.h"
#include "tpu/support/host_memory.h"

namespace tpu::eval {
namespace {

using hlo::Opcode;

// What the evaluator keeps about a device whatever it computes: its place in the lists of those that go on and of what
// they hold. Of a few devices it is nothing that counts.
constexpr int64_t kManyDevices = 1 << 20, kPerDevice = 64;
constexpr int kMaxDepth = 1000;  // of calls and regions; deeper ones count nothing

// A value: the bytes that it keeps alive itself (0 where another value holds its storage), and whether devices
// hold different copies.
struct Held {
  int64_t bytes = 0;
  bool differs = false;
};
using HeldList = std::vector<Held>;

// May take the storage of an operand that dies.
bool worksInPlace(Opcode op) {
  return hlo::hasTrait(op, hlo::kElementwise) || op == Opcode::reshape || op == Opcode::dynamic_reshape ||
         op == Opcode::dynamic_update_slice || op == Opcode::scatter || op == Opcode::bitcast_convert ||
         op == Opcode::map;
}

bool isConstant(Opcode op) { return op == Opcode::constant || op == Opcode::chlo_constant; }

class Walk {
 public:
  explicit Walk(const hlo::Module& module)
      : m_(module),
        devices_(numDevices(module)),
        held_(module.numValues()),
        last_use_(module.numValues(), -1),
        at_(module.numRegions(), -1),
        made_(module.numLiterals()),
        peak_loc_(module.func(module.entry).loc) {
    for (const hlo::Func& func : module.funcs) findLastUses(func.body);
  }

  MemoryNeed run() {
    const hlo::Func& entry = m_.func(m_.entry);
    if (devices_ > kManyDevices) grow(mulBytes(devices_, kPerDevice), entry.loc);
    HeldList args;
    int64_t whole = 0;
    for (size_t i = 0; i < m_.region(entry.body).args.size(); ++i) {
      whole = addBytes(whole, arrayBytes(argumentType(m_, i)));
      args.push_back(argument(entry, i));
    }
    grow(whole, entry.loc);
    live_ = 0;
    runRegion(entry.body, args);
    // One array that is most of it is the better place than the op at which it all came together.
    return {peak_, m_.loc(largest_ > peak_ / 2 ? largest_loc_ : peak_loc_).str()};
  }

 private:
  // The position of each value's last use among the ops of the region that defines it.
  void findLastUses(hlo::RegionId region) {
    const std::vector<hlo::OpId>& ops = m_.region(region).ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      at_[region.v] = static_cast<int64_t>(i);
      const hlo::Op& op = m_.op(ops[i]);
      for (hlo::ValueId v : op.operands) last_use_[v.v] = at_[regionOf(v).v];
      for (hlo::RegionId inner : op.regions) findLastUses(inner);
    }
  }
  hlo::RegionId regionOf(hlo::ValueId v) const {
    const hlo::Value& value = m_.value(v);
    return value.def.valid() ? m_.op(value.def).parent : value.region;
  }

  static int64_t arrayBytes(const hlo::Type& type) {
    if (type.kind != hlo::TypeKind::kTensor || llvm::is_contained(type.dims, hlo::kDynamicDim)) return 0;
    return mulBytes(type.numElements(), hostBytes(type.element));
  }

  // An argument as devices hold it: parts at the same place are one tensor.
  Held argument(const hlo::Func& entry, size_t i) const {
    const int64_t bytes = hlo::byteSize(m_, m_.value(m_.region(entry.body).args[i]).type);
    if (m_.stage != hlo::Stage::kSpmd || i >= entry.arg_ports.size() || !entry.arg_ports[i].sharding)
      return {bytes, false};
    const hlo::Sharding& sharding = m_.sharding(entry.arg_ports[i].sharding);
    int64_t parts = 1;
    for (const hlo::DimSharding& dim : sharding.dims)
      for (const hlo::AxisRef& axis : dim.axes) parts = mulBytes(parts, axis.size);
    return {mulBytes(bytes, std::min(parts, devices_)), parts > 1};
  }

  void grow(int64_t bytes, hlo::LocId loc) {
    live_ = addBytes(live_, bytes);
    if (live_ > peak_) {
      peak_ = live_;
      peak_loc_ = loc;
    }
    if (bytes <= largest_) return;
    largest_ = bytes;
    largest_loc_ = loc;
  }
  void drop(Held& value) {
    live_ -= std::min(live_, value.bytes);
    value.bytes = 0;
  }

  HeldList runRegion(hlo::RegionId id, const HeldList& args) {
    const hlo::Region& region = m_.region(id);
    if (++depth_ > kMaxDepth) return --depth_, HeldList();
    for (size_t i = 0; i < region.args.size(); ++i) {
      Held& value = held_[region.args[i].v];
      value = i < args.size() ? args[i] : Held();
      grow(value.bytes, m_.value(region.args[i]).loc);
      if (last_use_[region.args[i].v] < 0) drop(value);
    }
    HeldList out;
    for (size_t i = 0; i < region.ops.size(); ++i) {
      const hlo::Op& op = m_.op(region.ops[i]);
      HeldList in = take(op, id, static_cast<int64_t>(i));
      if (op.opcode == Opcode::return_) {
        out = std::move(in);
        for (Held& value : out) live_ -= std::min(live_, value.bytes);
        break;
      }
      runOp(region.ops[i], std::move(in));
      for (hlo::ValueId v : op.results)
        if (last_use_[v.v] < 0) drop(held_[v.v]);
      dropCaptured(op, id, static_cast<int64_t>(i));
    }
    --depth_;
    return out;
  }

  // The operands; those that die here bring their storage along.
  HeldList take(const hlo::Op& op, hlo::RegionId region, int64_t position) {
    HeldList in;
    for (hlo::ValueId v : op.operands) {
      Held& value = held_[v.v];
      const bool dies = regionOf(v) == region && last_use_[v.v] == position;
      in.push_back({dies ? value.bytes : 0, value.differs});
      if (dies) value.bytes = 0;
    }
    return in;
  }
  // Values that regions of an op used for the last time.
  void dropCaptured(const hlo::Op& op, hlo::RegionId region, int64_t position) {
    for (hlo::RegionId inner : op.regions)
      for (hlo::OpId id : m_.region(inner).ops) {
        for (hlo::ValueId v : m_.op(id).operands)
          if (regionOf(v) == region && last_use_[v.v] == position) drop(held_[v.v]);
        dropCaptured(m_.op(id), region, position);
      }
  }

  // Hands its operands on. (Custom calls may.)
  bool handsOn(Opcode op) const {
    return op == Opcode::optimization_barrier || op == Opcode::tuple || op == Opcode::get_tuple_element ||
           op == Opcode::custom_call || op == Opcode::sdy_sharding_constraint || op == Opcode::sdy_reshard ||
           op == Opcode::sdy_propagation_barrier || op == Opcode::sdy_data_flow_edge ||
           (m_.stage == hlo::Stage::kHlo && hlo::hasTrait(op, hlo::kCollective) &&
            hlo::opInfo(op).name.starts_with("sdy."));
  }
  static Held together(const HeldList& parts) {
    Held all;
    for (const Held& part : parts) {
      all.bytes = addBytes(all.bytes, part.bytes);
      all.differs |= part.differs;
    }
    return all;
  }

  void runOp(hlo::OpId id, HeldList in) {
    const hlo::Op& op = m_.op(id);
    HeldList out;
    if (isConstant(op.opcode))
      out = constant(id);
    else if (hlo::hasTrait(op.opcode, hlo::kControl))
      out = control(id, in);
    else if (op.opcode == Opcode::tuple)
      out = {together(in)};
    else if (handsOn(op.opcode))
      out = in;
    else
      out = compute(id, in);
    out.resize(op.results.size());
    for (size_t r = 0; r < out.size(); ++r) held_[op.results[r].v] = out[r];
    settle(id, together(in).bytes, together(out).bytes);
  }

  // Operands are still counted when the results appear, except where they became results.
  void settle(hlo::OpId id, int64_t from_operands, int64_t results) {
    const hlo::Op& op = m_.op(id);
    const bool moved = handsOn(op.opcode) || worksInPlace(op.opcode);
    const int64_t taken = moved ? std::min(from_operands, results) : 0;
    grow(results - taken, op.loc);
    live_ -= std::min(live_, from_operands - taken);
  }

  // Made once and kept.
  HeldList constant(hlo::OpId id) {
    const hlo::LiteralId literal = m_.findAttr(id, hlo::AttrKey::value)->literal;
    if (!made_[literal.v]) grow(hlo::byteSize(m_, m_.literal(literal).type), m_.op(id).loc);
    made_[literal.v] = true;
    return {Held()};
  }

  HeldList compute(hlo::OpId id, const HeldList& in) {
    const hlo::Op& op = m_.op(id);
    const bool collective = hlo::hasTrait(op.opcode, hlo::kCollective);
    bool differs = op.opcode == Opcode::partition_id || op.opcode == Opcode::replica_id || together(in).differs;
    if (collective && hlo::groupSize(m_, id) >= devices_) differs = false;  // one copy for all
    HeldList out;
    for (hlo::ValueId v : op.results) {
      const int64_t bytes = hlo::byteSize(m_, m_.value(v).type);
      // Members of a group may share what a collective gives them.
      out.push_back({differs && !collective ? mulBytes(bytes, devices_) : bytes, differs});
    }
    return out;
  }

  // Control flow owns its operands while it runs; nothing of them is left afterwards.
  HeldList control(hlo::OpId id, HeldList& in) {
    const hlo::Op& op = m_.op(id);
    HeldList moved = in;
    for (Held& value : in) {
      live_ -= std::min(live_, value.bytes);
      value.bytes = 0;
    }
    HeldList out;
    switch (op.opcode) {
      case Opcode::while_:
        out = runWhile(op, moved);
        break;
      case Opcode::if_:
      case Opcode::case_:
        out = cheapestBranch(op);
        break;
      case Opcode::call:
        out = runCall(m_.findFunc(m_.getString(id, hlo::AttrKey::callee)), moved);
        break;
      case Opcode::composite:
        out = runCall(m_.findFunc(m_.getString(id, hlo::AttrKey::decomposition)), moved);
        break;
      case Opcode::sdy_manual_computation:
        return runManual(op);
      default:
        if (!op.regions.empty()) out = runRegion(op.regions[0], moved);
    }
    return out;
  }

  // Parts of the operands in, whole arrays out.
  HeldList runManual(const hlo::Op& op) {
    HeldList parts, out;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const int64_t whole = hlo::byteSize(m_, m_.value(op.operands[i]).type);
      const int64_t local = hlo::byteSize(m_, m_.value(m_.region(op.regions[0]).args[i]).type);
      parts.push_back({whole, local < whole});
    }
    runRegion(op.regions[0], parts);
    for (hlo::ValueId v : op.results) out.push_back({hlo::byteSize(m_, m_.value(v).type), false});
    return out;
  }

  HeldList runWhile(const hlo::Op& op, const HeldList& carried) {
    HeldList seen = carried;  // by the condition, which gives nothing of it away
    int64_t bytes = 0;
    for (Held& value : seen) {
      bytes = addBytes(bytes, value.bytes);
      value.bytes = 0;
    }
    live_ = addBytes(live_, bytes);
    runRegion(op.regions[0], seen);
    live_ -= std::min(live_, bytes);
    return runRegion(op.regions[1], carried);
  }

  HeldList cheapestBranch(const hlo::Op& op) {
    const int64_t before = peak_, live = live_;
    const hlo::LocId before_loc = peak_loc_;
    int64_t least = INT64_MAX;
    hlo::LocId least_loc = before_loc;
    HeldList out;
    for (hlo::RegionId region : op.regions) {
      peak_ = before;
      live_ = live;
      HeldList here = runRegion(region, {});
      if (peak_ < least || out.empty()) {
        least = peak_;
        least_loc = peak_ > before ? peak_loc_ : before_loc;
        out = std::move(here);
      }
    }
    live_ = live;
    peak_ = op.regions.empty() ? before : least;
    peak_loc_ = least_loc;
    return out;
  }

  // A function costs the same wherever it is called with operands of the same kind.
  HeldList runCall(hlo::FuncId func, const HeldList& args) {
    if (!func) return {};
    std::vector<std::pair<int64_t, bool>> key;
    for (const Held& value : args) key.emplace_back(value.bytes, value.differs);
    auto [known, fresh] = calls_.try_emplace({func.v, std::move(key)});
    if (fresh) {
      const int64_t outer_peak = peak_, outer_live = live_;
      const hlo::LocId outer_loc = peak_loc_;
      peak_ = live_ = 0;
      HeldList out = runRegion(m_.func(func).body, args);
      Known& now = calls_[known->first];  // nested calls add to the table
      now = {peak_, peak_loc_, std::move(out)};
      peak_ = outer_peak;
      live_ = outer_live;
      peak_loc_ = outer_loc;
    }
    const Known call = known->second;
    if (addBytes(live_, call.peak) > peak_) {
      peak_ = addBytes(live_, call.peak);
      peak_loc_ = call.loc;
    }
    return call.results;
  }

  struct Known {
    int64_t peak = 0;
    hlo::LocId loc;
    HeldList results;
  };

  const hlo::Module& m_;
  const int64_t devices_;
  std::vector<Held> held_;          // by value
  std::vector<int64_t> last_use_;   // by value; -1: never used
  std::vector<int64_t> at_;         // by region: the op that findLastUses is in
  std::vector<bool> made_;          // by literal
  std::map<std::pair<uint32_t, std::vector<std::pair<int64_t, bool>>>, Known> calls_;
  int64_t live_ = 0, peak_ = 0, largest_ = 0;
  hlo::LocId peak_loc_, largest_loc_;
  int depth_ = 0;
};

}  // namespace

MemoryNeed memoryNeed(const hlo::Module& module) { return Walk(module).run(); }

llvm::Error requireMemory(const hlo::Module& module) {
  const MemoryNeed need = memoryNeed(module);
  return requireHostMemory(need.bytes, need.loc, "evaluating the program");
}

}  // namespace tpu::eval
