// What the passes on collectives share.
#include "collectives.h"

#include "op_key.h"
#include "tpu/hlo/analysis.h"
#include "tpu/sharding/reducer.h"

namespace tpu::partition {

void Replacements::replace(hlo::ValueId from, hlo::ValueId to) {
  if (map_.size() <= from.v) map_.resize(m_.numValues());
  map_[from.v] = to;
}

hlo::ValueId Replacements::of(hlo::ValueId v) const {
  while (v.v < map_.size() && map_[v.v]) v = map_[v.v];
  return v;
}

void Replacements::apply() {
  if (map_.empty()) return;
  hlo::walk(m_, m_.func(m_.entry).body, [&](hlo::OpId id) {
    for (hlo::ValueId& v : m_.op(id).operands) v = of(v);
  });
}

std::string collectiveKey(const hlo::Module& m, hlo::OpId op) {
  OpKey key;
  for (hlo::RegionId r : m.op(op).regions) {
    if (sharding::reducerOf(m, r)) continue;
    key.put(int64_t{-1} - op.v);  // like no other
    return std::move(key.text);
  }
  key.put(m, op);
  return std::move(key.text);
}

}  // namespace tpu::partition
