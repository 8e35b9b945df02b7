// Random programs: mesh, arguments, results, and the choice of steps.
#include "random_program_test_util.h"
#include "tpu/sharding/axes.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::RegionId;
using hlo::ValueId;
using Ints = Generator::Ints;

void Generator::makeMesh() {
  hlo::Mesh mesh;
  mesh.name = "mesh";
  int64_t total = 1;
  int axes = 1 + static_cast<int>(r_.below(3));
  for (int i = 0; i < axes; ++i) {
    constexpr int64_t kSizes[] = {2, 2, 3, 4, 4, 1};
    int64_t n = kSizes[r_.below(6)];
    if (total * n > 16) n = 1;
    total *= n;
    mesh.axes.push_back({std::string(1, static_cast<char>('x' + i)), n});
  }
  m_.meshes.push_back(mesh);
  m_.num_partitions = total;
}

Ints Generator::randomDims() {
  constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 8, 4, 12};
  Ints d;
  for (int64_t i = 0, n = 1 + r_.below(3); i < n; ++i) d.push_back(kSizes[r_.below(11)]);
  return d;
}

hlo::ShardingId Generator::randomSharding(const Ints& dims) {
  hlo::Sharding s;
  s.mesh = hlo::MeshId(0);
  s.dims.resize(dims.size());
  for (uint32_t a = 0; a < m_.meshes[0].axes.size(); ++a) {
    int64_t n = m_.meshes[0].axes[a].size;
    if (n == 1 || dims.empty() || r_.chance(35)) continue;
    hlo::AxisRef ref{a, 1, n};
    if (n == 4 && r_.chance(30)) ref = r_.chance(50) ? hlo::AxisRef{a, 1, 2} : hlo::AxisRef{a, 2, 2};
    sharding::append(s.dims[r_.below(static_cast<int64_t>(dims.size()))].axes, ref);
  }
  for (hlo::DimSharding& d : s.dims) {
    d.open = r_.chance(30);
    if (d.axes.size() > 1 && r_.chance(50)) std::swap(d.axes[0], d.axes[1]);
  }
  return m_.internSharding(s);
}

Ints Generator::dims(ValueId v) const { return Ints(m_.typeOf(v).dims.begin(), m_.typeOf(v).dims.end()); }

ValueId Generator::any() { return pool_[r_.below(static_cast<int64_t>(pool_.size()))]; }

ValueId Generator::ofDims(const Ints& want) {
  for (int i = 0; i < 6; ++i) {
    ValueId v = any();
    if (dims(v) == want) return v;
  }
  if (want.empty()) return scalar(r_.below(5));
  return b_.add(
      b_.iota(m_.tensorType(ElementType::kS32, want), r_.below(std::max<int64_t>(1, want.size()))),
      b_.splatInt(m_.tensorType(ElementType::kS32, want), r_.below(5)));
}

ValueId Generator::scalar(int64_t v) { return b_.scalarInt(ElementType::kS32, v); }

void Generator::keep(ValueId v) {
  if (m_.typeOf(v).numElements() <= 4000) pool_.push_back(v);
}

uint64_t Random::next() {
  state += 0x9e3779b97f4a7c15ull;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

Generator::Generator(uint64_t seed, int num_ops)
    : r_{seed * 7919 + 17}, num_ops_(num_ops), func_(m_.addFunc("main", false)), b_(m_, m_.func(func_).body) {
  m_.entry = func_;
  m_.name = "random";
}

hlo::Module Generator::make() {
  makeMesh();
  int args = 2 + static_cast<int>(r_.below(3));
  for (int i = 0; i < args; ++i) {
    ValueId v = m_.addArg(m_.func(func_).body, m_.tensorType(ElementType::kS32, randomDims()), hlo::LocId());
    hlo::Port p;
    if (r_.chance(80)) p.sharding = randomSharding(dims(v));
    m_.funcs[func_.v].arg_ports.push_back(p);
    pool_.push_back(v);
  }
  b_.atEnd(m_.func(func_).body);
  for (int i = 0; i < num_ops_; ++i) step();
  llvm::SmallVector<ValueId, 4> results;
  for (size_t i = 0; i < 3 && i < pool_.size(); ++i) results.push_back(pool_[pool_.size() - 1 - i]);
  b_.yield(results);
  for (ValueId v : results) {
    m_.funcs[func_.v].result_types.push_back(m_.value(v).type);
    hlo::Port p;
    if (r_.chance(50)) p.sharding = randomSharding(dims(v));
    m_.funcs[func_.v].result_ports.push_back(p);
  }
  return std::move(m_);
}

void Generator::step() {
  ValueId x = any();
  using Step = void (Generator::*)(ValueId, const Ints&);
  static constexpr Step kSteps[] = {
      &Generator::sumStep,         &Generator::productStep,       &Generator::selectStep,
      &Generator::transposeStep,   &Generator::reshapeStep,       &Generator::sliceStep,
      &Generator::padStep,         &Generator::concatStep,        &Generator::reverseStep,
      &Generator::reduceStep,      &Generator::dotStep,           &Generator::dotStep,
      &Generator::broadcastStep,   &Generator::constraintStep,    &Generator::constraintStep,
      &Generator::constraintStep,  &Generator::dynamicSliceStep,  &Generator::dynamicUpdateStep,
      &Generator::gatherStep,      &Generator::scatterStep,       &Generator::sortStep,
      &Generator::topKStep,        &Generator::windowStep,        &Generator::branchStep,
      &Generator::convolutionStep, &Generator::manualStep,        &Generator::loopStep,
      &Generator::runningStep,     &Generator::argMaxStep,        &Generator::selectAndScatterStep,
      &Generator::sortPairsStep,   &Generator::matrixStep,        &Generator::fftStep,
      &Generator::randomBitsStep,  &Generator::batchedGatherStep, &Generator::windowGatherStep,
      &Generator::predStep,        &Generator::convertStep,       &Generator::clampStep,
      &Generator::groupStep,       &Generator::barrierStep,       &Generator::reshardStep,
      &Generator::ifStep,          &Generator::nestedLoopStep,    &Generator::nestedManualStep,
      &Generator::exchangeStep,    &Generator::batchedScatterStep,
      &Generator::collectivesStep};
  (this->*kSteps[r_.below(std::size(kSteps))])(x, dims(x));
}

void Generator::sumStep(ValueId x, const Ints& d) { keep(b_.add(x, ofDims(d))); }
void Generator::productStep(ValueId x, const Ints& d) { keep(b_.multiply(x, ofDims(d))); }
void Generator::selectStep(ValueId x, const Ints& d) {
  keep(b_.select(b_.compare(hlo::Comparison::kLt, x, ofDims(d)), x, ofDims(d)));
}
void Generator::reverseStep(ValueId x, const Ints& d) {
  keep(d.empty() ? x : b_.reverse(x, {r_.below(static_cast<int64_t>(d.size()))}));
}

hlo::Module randomProgram(uint64_t seed, int num_ops) { return Generator(seed, num_ops).make(); }

}  // namespace tpu::partition
