// A program with Shardy's attributes in GSPMD's words: strings on ports, @Sharding calls, borders of manual regions.
#include "normal_form_test_util.h"
#include "tpu/hlo/analysis.h"
#include "tpu/sharding/gspmd.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::RegionId;
using hlo::ValueId;
using sharding::Axes;

namespace {

bool expressible(const hlo::Module& m, hlo::ShardingId id, bool port) {
  const hlo::Sharding& s = m.sharding(id);
  bool ok = s.replicated.empty() && s.unreduced.empty() && m.meshes[s.mesh.v].maximal_device < 0;
  for (const hlo::DimSharding& d : s.dims) ok &= d.priority < 0 && !(port && d.open);
  return ok;
}

class Respeller {
 public:
  explicit Respeller(hlo::Module& m) : m_(m) {}

  bool possible() const {
    if (m_.meshes.size() != 1) return false;
    bool ok = true;
    auto all = [&](OpId id, AttrKey key) {
      for (int64_t s : m_.getInts(id, key)) ok &= expressible(m_, hlo::ShardingId(static_cast<uint32_t>(s)), false);
    };
    hlo::walk(m_, [&](OpId id) {
      switch (m_.op(id).opcode) {
        case Opcode::sdy_sharding_constraint:
          ok &= expressible(m_, m_.findAttr(id, AttrKey::sharding)->sharding, false);
          break;
        case Opcode::sdy_manual_computation:
          all(id, AttrKey::in_shardings);
          all(id, AttrKey::out_shardings);
          break;
        case Opcode::sdy_reshard:
        case Opcode::sdy_propagation_barrier:
        case Opcode::sdy_sharding_group:
          ok = false;
          break;
        default:
          ok &= !m_.has(id, AttrKey::result_shardings);
      }
    });
    for (const hlo::Func& f : m_.funcs) {
      for (const auto* list : {&f.arg_ports, &f.result_ports}) {
        for (const hlo::Port& p : *list) ok &= !p.sharding || expressible(m_, p.sharding, true);
      }
    }
    return ok;
  }

  void run() {
    for (hlo::Func& f : m_.funcs) {
      for (auto* list : {&f.arg_ports, &f.result_ports}) {
        for (hlo::Port& p : *list) {
          if (!p.sharding) continue;
          p.attrs = "mhlo.sharding = \"" + text(p.sharding, {}) + "\"";
          p.sharding = {};
        }
      }
    }
    for (size_t f = 0; f < m_.funcs.size(); ++f) {
      if (m_.funcs[f].body) region(m_.funcs[f].body, {});
    }
    m_.replaceUses(map_);
    for (uint32_t i = 0; i < m_.numValues(); ++i) m_.value(ValueId(i)).sharding = {};
    m_.num_partitions = m_.meshes[0].numDevices();
    m_.meshes.clear();
  }

 private:
  std::string text(hlo::ShardingId id, const Axes& manual) const {
    sharding::Gspmd g;
    const hlo::Sharding& s = m_.sharding(id);
    g.kind = sharding::GspmdKind::kTiled;
    for (const hlo::DimSharding& d : s.dims) g.dims.push_back(Axes(d.axes.begin(), d.axes.end()));
    g.manual = manual;
    return printGspmd(m_.meshes[s.mesh.v], g);
  }
  std::string openDims(hlo::ShardingId id) const {
    std::string open;
    const hlo::Sharding& s = m_.sharding(id);
    for (size_t d = 0; d < s.dims.size(); ++d) {
      if (s.dims[d].open) open += (open.empty() ? "" : ",") + std::to_string(d);
    }
    return open;
  }
  /// Nothing but manual axes: what stands on a border's inner side.
  std::string inside(hlo::TypeId type, const Axes& manual) const {
    if (sharding::product(manual) == m_.meshes[0].numDevices()) return "{manual}";
    sharding::Gspmd g;
    g.kind = sharding::GspmdKind::kTiled;
    g.dims.resize(m_.type(type).rank());
    g.manual = manual;
    return printGspmd(m_.meshes[0], g);
  }

  void call(OpId id, llvm::StringRef target, const std::string& sharding, const std::string& open) {
    m_.op(id).opcode = Opcode::custom_call;
    m_.op(id).attrs.clear();
    m_.setString(id, AttrKey::call_target_name, target);
    m_.setString(id, AttrKey::mhlo_sharding, sharding);
    if (!open.empty()) m_.setString(id, AttrKey::backend_config, "unspecified_dims=[" + open + "]");
  }
  ValueId call(RegionId r, ValueId in, hlo::TypeId type, llvm::StringRef target, const std::string& sharding,
               const std::string& open, hlo::LocId loc) {
    OpId id = m_.create(r, Opcode::custom_call, {in}, {type}, loc);
    call(id, target, sharding, open);
    list_->push_back(id);
    return m_.op(id).results[0];
  }
  void replace(ValueId from, ValueId to) {
    if (map_.size() < m_.numValues()) map_.resize(m_.numValues());
    map_[from.v] = to;
  }

  void manual(OpId id, RegionId r, const Axes& outer) {
    Axes axes = outer;
    for (const hlo::AxisRef& a : m_.findAttr(id, AttrKey::manual_axes)->axes) axes.push_back(a);
    llvm::sort(axes, [](const hlo::AxisRef& a, const hlo::AxisRef& b) { return a.axis < b.axis; });
    RegionId body = m_.op(id).regions[0];
    auto list = [&](AttrKey key) { auto ids = m_.getInts(id, key); return std::vector<int64_t>(ids.begin(), ids.end()); };
    const std::vector<int64_t> in = list(AttrKey::in_shardings), out = list(AttrKey::out_shardings);
    const hlo::LocId loc = m_.op(id).loc;
    for (size_t i = 0; i < in.size(); ++i) {
      hlo::ShardingId s(static_cast<uint32_t>(in[i]));
      ValueId whole = m_.op(id).operands[i], part = m_.region(body).args[i];
      ValueId asked = call(r, whole, m_.value(whole).type, "Sharding", text(s, outer), openDims(s), loc);
      replace(part, call(r, asked, m_.value(part).type, "SPMDFullToShardShape", inside(m_.value(part).type, axes), "", loc));
    }
    const std::vector<OpId> ops = m_.region(body).ops;
    for (OpId inner : ops) {
      if (m_.op(inner).opcode != Opcode::return_) {
        m_.op(inner).parent = r;
        op(inner, r, axes);
        continue;
      }
      for (size_t i = 0; i < out.size(); ++i) {
        hlo::ShardingId s(static_cast<uint32_t>(out[i]));
        ValueId part = m_.op(inner).operands[i], whole = m_.op(id).results[i];
        ValueId asked = call(r, part, m_.value(part).type, "Sharding", inside(m_.value(part).type, axes), "", loc);
        replace(whole, call(r, asked, m_.value(whole).type, "SPMDShardToFullShape", text(s, outer), openDims(s), loc));
      }
    }
  }

  void op(OpId id, RegionId r, const Axes& outer) {
    if (m_.op(id).opcode == Opcode::sdy_manual_computation) return manual(id, r, outer);
    if (m_.op(id).opcode == Opcode::sdy_sharding_constraint) {
      hlo::ShardingId s = m_.findAttr(id, AttrKey::sharding)->sharding;
      call(id, "Sharding", text(s, outer), openDims(s));
    }
    list_->push_back(id);
    for (size_t k = 0; k < m_.op(id).regions.size(); ++k) region(m_.op(id).regions[k], outer);
  }

  void region(RegionId r, const Axes& outer) {
    const std::vector<OpId> before = m_.region(r).ops;
    std::vector<OpId> after;
    std::vector<OpId>* around = std::exchange(list_, &after);
    for (OpId id : before) op(id, r, outer);
    list_ = around;
    m_.region(r).ops = std::move(after);
  }

  hlo::Module& m_;
  std::vector<ValueId> map_;
  std::vector<OpId>* list_ = nullptr;
};

}  // namespace

bool respellAsGspmd(hlo::Module& m) {
  Respeller respeller(m);
  if (!respeller.possible()) return false;
  respeller.run();
  return true;
}

}  // namespace tpu::partition
