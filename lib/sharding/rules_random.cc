// Random bits come from counters: element after element takes the next one. A part of the leading dimension is a run of
// counters, so a device can draw its own part, starting where its run starts.
#include <numeric>

#include "rules.h"

namespace tpu::sharding {

namespace {

int64_t stateWords(const hlo::Type& state) { return state.numElements() * elementBits(state.element) / 64; }

}  // namespace

bool usesPhilox(const hlo::Module& m, hlo::OpId id) {
  llvm::StringRef algorithm = m.getString(id, hlo::AttrKey::rng_algorithm);
  return algorithm == "PHILOX" || (algorithm != "THREE_FRY" && stateWords(m.typeOf(m.op(id).operands[0])) == 3);
}

bool counterRuns(const hlo::Module& m, hlo::OpId id, CounterRuns& runs) {
  const hlo::Type &state = m.typeOf(m.op(id).operands[0]), &bits = m.typeOf(m.op(id).results[1]);
  if (state.element != ElementType::kU64 || state.rank() != 1 || elementBits(bits.element) < 8) return false;
  int64_t lead = 0, after = 1;
  while (lead < bits.rank() && bits.dims[lead] == 1) ++lead;
  if (lead == bits.rank()) return false;
  for (int64_t d = lead + 1; d < bits.rank(); ++d) after *= bits.dims[d];
  runs.dim = lead;
  const bool wide = elementBits(bits.element) == 64;
  if (usesPhilox(m, id)) {
    // Four words a counter.
    const int64_t words = after * (wide ? 2 : 1);
    runs.granule = 4 / std::gcd<int64_t>(4, words);
    runs.counters_per_granule = runs.granule * words / 4;
  } else if (wide) {
    runs.granule = 1;
    runs.counters_per_granule = after;
  } else if (bits.dims[lead] % 2 == 0) {
    // Two words a counter, alternating along the first even dimension: this one.
    runs.granule = 2;
    runs.counters_per_granule = after;
  } else {
    // Alternating along a later one, which every row of this dimension does alike.
    int64_t pair = -1;
    for (int64_t d = lead + 1; d < bits.rank() && pair < 0; ++d) {
      if (bits.dims[d] % 2 == 0) pair = bits.dims[d];
    }
    if (pair < 0) return false;
    runs.granule = 1;
    runs.counters_per_granule = after / 2;
  }
  return bits.dims[lead] % runs.granule == 0 && bits.dims[lead] > runs.granule;
}

void rngRule(const RuleInput& in, OpRule& rule) {
  CounterRuns runs;
  if (in.op.opcode != hlo::Opcode::rng_bit_generator || !counterRuns(in.m, in.id, runs)) {
    rule.note = "every device must draw the same random bits";
    return;
  }
  int part = rule.addFactor(in.result(1).dims[runs.dim] / runs.granule, FactorKind::kPass, true);
  rule.results[1][runs.dim].push_back(part);
  if (runs.granule > 1) rule.results[1][runs.dim].push_back(rule.addFactor(runs.granule, FactorKind::kReplicate));
}

}  // namespace tpu::sharding
