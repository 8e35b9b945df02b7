// Small collectives cost the way, not the load: several over the same devices become one of several operands. A group
// grows while its load takes no longer than the way to all devices and back, and only over what does not depend on it.
#include <map>

#include "collectives.h"
#include "tpu/hlo/analysis.h"
#include "tpu/sharding/axes.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::RegionId;
using hlo::ValueId;

namespace {

class Combine {
 public:
  Combine(hlo::Module& m, const target::Target& target) : m_(m), target_(target), replacements_(m) {}

  void run() {
    region(m_.func(m_.entry).body);
    if (!changed_) return;
    replacements_.apply();
    dropDead(m_);
  }

 private:
  struct Group {
    std::vector<OpId> members;
    int64_t bytes = 0;
  };

  std::optional<Opcode> kind(OpId id) const {
    Opcode opcode = m_.op(id).opcode;
    if (opcode != Opcode::all_reduce && opcode != Opcode::all_gather) return std::nullopt;
    return m_.has(id, AttrKey::axes) ? std::optional<Opcode>(opcode) : std::nullopt;
  }

  /// Bytes whose time on two links is that of the hops to all devices of the group.
  int64_t limit(OpId id) const {
    double n = static_cast<double>(sharding::product(m_.findAttr(id, AttrKey::axes)->axes));
    double hops = (n - 1) * (m_.op(id).opcode == Opcode::all_reduce ? 2 : 1);
    return static_cast<int64_t>(hops * static_cast<double>(target_.chip.ici_hop_ns) * 1e-9 * 2 *
                                static_cast<double>(target_.chip.ici_sustained_bytes_per_s));
  }

  std::string key(OpId id) const {
    return collectiveKey(m_, id) + '\0' + std::to_string(static_cast<int>(m_.typeOf(m_.op(id).operands[0]).element));
  }

  /// Members are collected in order; a group ends before the first op that needs one of its results, and stands there.
  void region(RegionId r) {
    const std::vector<OpId> before = m_.region(r).ops;
    std::vector<OpId> after;
    std::map<std::string, Group> open;
    std::map<uint32_t, std::string> waiting;  // result -> group
    auto close = [&](const std::string& k) {
      auto it = open.find(k);
      if (it == open.end()) return;
      for (OpId id : it->second.members) {
        for (ValueId v : m_.op(id).results) waiting.erase(v.v);
      }
      emit(it->second, r, after);
      open.erase(it);
    };
    auto needs = [&](OpId id) {
      for (size_t i = 0; i < m_.op(id).operands.size(); ++i) {  // by number: closing a group adds operations
        if (auto it = waiting.find(m_.op(id).operands[i].v); it != waiting.end())
          close(std::string(it->second));
      }
    };
    for (OpId id : before) {
      for (size_t k = 0; k < m_.op(id).regions.size(); ++k) {
        const RegionId inner = m_.op(id).regions[k];
        if (!kind(id)) region(inner);
        hlo::walk(m_, inner, needs);
      }
      needs(id);
      if (!kind(id)) {
        // Nothing waits through a loop, or passes what is seen from outside.
        bool border = hlo::hasTrait(m_.op(id).opcode, hlo::kSideEffect) || hlo::hasTrait(m_.op(id).opcode, hlo::kControl);
        while (border && !open.empty()) close(std::string(open.begin()->first));
        after.push_back(id);
        continue;
      }
      std::string k = key(id);
      int64_t bytes = 0;
      for (ValueId v : m_.op(id).results) bytes += bytesOf(m_.typeOf(v));
      if (auto it = open.find(k); it != open.end() && it->second.bytes + bytes > limit(id)) close(k);
      Group& g = open[k];
      g.members.push_back(id);
      g.bytes += bytes;
      for (ValueId v : m_.op(id).results) waiting[v.v] = k;
    }
    while (!open.empty()) close(std::string(open.begin()->first));
    m_.region(r).ops = std::move(after);
  }

  void emit(const Group& g, RegionId r, std::vector<OpId>& after) {
    OpId first = g.members[0];
    if (g.members.size() > 1) {
      llvm::SmallVector<ValueId, 8> operands;
      llvm::SmallVector<hlo::TypeId, 8> types;
      std::vector<ValueId> results;
      for (OpId id : g.members) {
        operands.append(m_.op(id).operands.begin(), m_.op(id).operands.end());
        for (ValueId v : m_.op(id).results) {
          types.push_back(m_.value(v).type);
          results.push_back(v);
        }
      }
      OpId all = m_.create(r, m_.op(first).opcode, operands, types, m_.op(first).loc);
      m_.copyAttrs(first, all);
      for (RegionId inner : std::vector<RegionId>(m_.op(first).regions.begin(), m_.op(first).regions.end())) {
        m_.op(all).regions.push_back(inner);
        m_.region(inner).parent_op = all;
      }
      m_.op(first).regions.clear();
      for (size_t i = 0; i < results.size(); ++i) {
        m_.value(m_.op(all).results[i]).sharding = m_.value(results[i]).sharding;
        replacements_.replace(results[i], m_.op(all).results[i]);
      }
      for (hlo::Why& w : m_.whys) {
        if (w.op == first) w.op = all;
      }
      first = all;
      changed_ = true;
    }
    after.push_back(first);
  }

  hlo::Module& m_;
  const target::Target& target_;
  Replacements replacements_;
  bool changed_ = false;
};

}  // namespace

void combineCollectives(hlo::Module& m, const target::Target& target) { Combine(m, target).run(); }

}  // namespace tpu::partition
