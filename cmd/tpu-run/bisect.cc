#include "bisect.h"

#include <map>

#include "tpu/hlo/analysis.h"
#include "tpu/sharding/shard.h"

namespace tpu::run {
namespace {

using Pairs = std::vector<std::pair<hlo::OpId, hlo::OpId>>;  // here, there

// Values of a module by what can be recognised in another one.
std::map<std::string, std::vector<hlo::OpId>> opsByKey(const hlo::Module& m) {
  std::map<std::string, std::vector<hlo::OpId>> out;
  hlo::walk(m, m.func(m.entry).body, [&](hlo::OpId id) {
    const hlo::Op& op = m.op(id);
    if (op.results.size() != 1 || m.typeOf(op.results[0]).kind != hlo::TypeKind::kTensor) return;
    const std::string type = elementTypeName(m.typeOf(op.results[0]).element).str();
    out[(m.loc(op.loc) + " " + hlo::opInfo(op.opcode).mnemonic + " " + type).str()].push_back(id);
  });
  return out;
}

// Partial sums mean nothing before they are added.
bool isWhole(const hlo::Module& m, hlo::OpId op) {
  const hlo::ShardingId sharding = m.value(m.op(op).results[0]).sharding;
  return m.stage != hlo::Stage::kSpmd || !sharding.valid() || m.sharding(sharding).unreduced.empty();
}

// Dims of the whole array; in an spmd module with the padding that its shards carry.
hlo::Dims wholeDims(const hlo::Module& m, hlo::OpId op) {
  const hlo::Value& value = m.value(m.op(op).results[0]);
  hlo::Dims dims(m.type(value.type).dims);
  if (m.stage != hlo::Stage::kSpmd || !value.sharding.valid()) return dims;
  const hlo::Sharding& sharding = m.sharding(value.sharding);
  for (size_t d = 0; d < dims.size(); ++d) dims[d] *= shardCount(sharding.dims[d]);
  return dims;
}

bool fits(const hlo::Module& m, hlo::OpId op, const hlo::Dims& dims) {
  const hlo::Value& value = m.value(m.op(op).results[0]);
  if (m.stage != hlo::Stage::kSpmd || !value.sharding.valid()) return m.type(value.type).dims == dims;
  return localDims(m, dims, value.sharding) == m.type(value.type).dims;
}

// The dims under which both sides' values can be compared.
std::optional<hlo::Dims> commonDims(const hlo::Module& a, hlo::OpId x, const hlo::Module& b, hlo::OpId y) {
  hlo::Dims dims = wholeDims(a, x);
  const hlo::Dims other = wholeDims(b, y);
  if (dims.size() != other.size()) return std::nullopt;
  for (size_t d = 0; d < dims.size(); ++d) dims[d] = std::min(dims[d], other[d]);
  if (!fits(a, x, dims) || !fits(b, y, dims)) return std::nullopt;
  return dims;
}

class Matching {
 public:
  Matching(const hlo::Module& here, const hlo::Module& there) : here_(here), there_(there) {
    const auto theirs = opsByKey(there);
    for (const auto& [key, ops] : opsByKey(here)) {
      const auto other = theirs.find(key);
      if (other == theirs.end() || other->second.size() != ops.size()) continue;
      for (size_t i = 0; i < ops.size(); ++i) add(ops[i], other->second[i]);
    }
  }
  struct Pair {
    hlo::OpId there;
    hlo::Dims dims;
  };
  std::map<uint32_t, Pair> by_here;        // by the op's id
  std::map<uint32_t, hlo::Dims> by_there;

 private:
  void add(hlo::OpId x, hlo::OpId y) {
    if (!isWhole(here_, x) || !isWhole(there_, y)) return;
    const auto dims = commonDims(here_, x, there_, y);
    if (!dims) return;
    by_here[x.v] = {y, *dims};
    by_there[y.v] = *dims;
  }
  const hlo::Module &here_, &there_;
};

// Keeps the value of each matching op as it was first computed.
class Recorder : public eval::Observer {
 public:
  explicit Recorder(const Matching& matching) : matching_(matching) {}
  std::optional<hlo::Dims> wants(hlo::OpId op) override {
    const auto found = matching_.by_there.find(op.v);
    if (found == matching_.by_there.end() || values.count(op.v)) return std::nullopt;
    return found->second;
  }
  void see(hlo::OpId op, const HostTensor& whole) override { values.emplace(op.v, whole); }
  std::map<uint32_t, HostTensor> values;

 private:
  const Matching& matching_;
};

class Comparer : public eval::Observer {
 public:
  Comparer(const hlo::Module& module, const Matching& matching, Recorder& recorded,
           llvm::function_ref<eval::Tolerance(ElementType)> tolerance, Parting* out)
      : module_(module), matching_(matching), recorded_(recorded), tolerance_(tolerance), out_(out) {}
  std::optional<hlo::Dims> wants(hlo::OpId op) override {
    const auto found = matching_.by_here.find(op.v);
    if (out_->found || found == matching_.by_here.end() || !recorded_.values.count(found->second.there.v)) return std::nullopt;
    return found->second.dims;
  }
  void see(hlo::OpId op, const HostTensor& whole) override {
    const auto there = recorded_.values.find(matching_.by_here.at(op.v).there.v);
    const auto difference = eval::compareTensors(whole, there->second, tolerance_(whole.element));
    if (difference) {
      const hlo::Value& value = module_.value(module_.op(op).results[0]);
      out_->found = true;
      out_->op = hlo::opInfo(module_.op(op).opcode).mnemonic.str();
      out_->loc = module_.loc(module_.op(op).loc).str();
      out_->dims = hlo::Dims(whole.dims);
      out_->difference = *difference;
      out_->here = whole;
      out_->there = there->second;
      if (module_.stage == hlo::Stage::kSpmd)
        out_->device = ownerOf(module_, whole.dims, value.sharding, difference->first);
    } else {
      ++out_->agreed;
    }
    recorded_.values.erase(there);
  }

 private:
  const hlo::Module& module_;
  const Matching& matching_;
  Recorder& recorded_;
  llvm::function_ref<eval::Tolerance(ElementType)> tolerance_;
  Parting* out_;
};

}  // namespace

llvm::Expected<Parting> findParting(const hlo::Module& here, const hlo::Module& there, const std::vector<HostTensor>& inputs,
                                    llvm::function_ref<eval::Tolerance(ElementType)> tolerance) {
  hlo::Module a = here.clone(), b = there.clone();
  for (hlo::Module* m : {&a, &b})
    if (llvm::Error e = hlo::inlineCalls(*m, /*composites=*/true)) return e;
  const Matching matching(a, b);
  Parting out;
  out.matched = static_cast<int64_t>(matching.by_here.size());
  Recorder recorder(matching);
  if (auto results = eval::evaluate(b, inputs, nullptr, {.observer = &recorder}); !results)
    return results.takeError();
  Comparer comparer(a, matching, recorder, tolerance, &out);
  if (auto results = eval::evaluate(a, inputs, nullptr, {.observer = &comparer}); !results)
    return results.takeError();
  return out;
}

}  // namespace tpu::run
