// Collectives: the values of a group's devices meet here. Every member must be in the team that executes the
// op; a group of which only some devices arrive would wait forever.
#include <algorithm>

#include "interpreter.h"
#include "native.h"
#include "tpu/sharding/shard.h"
#include "values.h"

namespace tpu::eval {
namespace {

llvm::Error hang(const hlo::Module& module, hlo::OpId op, int64_t waiting, int64_t missing) {
  return fail(Code::kEvalHang, module.loc(module.op(op).loc),
              llvm::Twine("device ") + llvm::Twine(waiting) + " waits in " +
                  hlo::opInfo(module.op(op).opcode).name + " for device " + llvm::Twine(missing) +
                  ", which is on another path",
              ExitStatus::kHangs);
}

// The part of a group's work that depends on the kind of collective.
class Collective {
 public:
  Collective(const hlo::Module& module, hlo::OpId op) : module_(module), op_(op) {}

  // Results of one operand for the members of one group, in their order.
  llvm::Expected<Tensors> run(llvm::ArrayRef<Tensor> members) const {
    switch (module_.op(op_).opcode) {
      case Opcode::all_gather:
        return everyone(members.size(), join(members, integer(AttrKey::all_gather_dim)));
      case Opcode::all_reduce:
      case Opcode::cross_replica_sum:
        return reduceAll(members);
      case Opcode::reduce_scatter:
        return reduceScatter(members);
      case Opcode::all_to_all:
        return allToAll(members);
      case Opcode::collective_broadcast:
        return everyone(members.size(), members[0]);
      default:
        return fail(Code::kEvalUnsupported, loc(), "the evaluator does not take this collective");
    }
  }

 private:
  int64_t integer(AttrKey key) const { return module_.getInt(op_, key); }
  llvm::StringRef loc() const { return module_.loc(module_.op(op_).loc); }

  static Tensors everyone(size_t count, const Tensor& t) { return Tensors(count, t); }

  static Tensor join(llvm::ArrayRef<Tensor> parts, int64_t dim) {
    Dims dims = parts[0]->dims;
    dims[dim] = 0;
    for (const Tensor& t : parts) dims[dim] += t->dims[dim];
    Tensor out = makeTensor(parts[0]->element, dims);
    const std::vector<int64_t> strides = rowMajorStrides(dims);
    const int width = hostBytes(out->element);
    int64_t at = 0;
    for (const Tensor& t : parts) {
      stridedCopy(t->dims, width, t->bytes.data(), rowMajorStrides(t->dims),
                  out->bytes.data() + at * strides[dim] * width, strides);
      at += t->dims[dim];
    }
    return out;
  }

  static Tensor part(const Tensor& t, int64_t dim, int64_t count, int64_t index) {
    Dims dims = t->dims;
    dims[dim] /= count;
    const std::vector<int64_t> strides = rowMajorStrides(t->dims);
    Tensor out = makeTensor(t->element, dims);
    const int width = hostBytes(t->element);
    stridedCopy(dims, width, t->bytes.data() + index * dims[dim] * strides[dim] * width, strides,
                out->bytes.data(), rowMajorStrides(dims));
    return out;
  }

  // Folded in the group's order; narrow floats in f32 and rounded once.
  llvm::Expected<Tensor> fold(llvm::ArrayRef<Tensor> members) const {
    const ElementType element = members[0]->element;
    const bool sum = module_.op(op_).opcode == Opcode::cross_replica_sum;
    const std::optional<Opcode> single = sum ? Opcode::add : singleOp(module_, module_.op(op_).regions[0]);
    const ElementType type = single ? nativeType(element) : element;
    Tensor total = convertTo(members[0], type);
    for (const Tensor& t : members.drop_front()) {
      Tensor next = convertTo(t, type);
      if (single) {
        if (Tensor folded = binaryOf(*single, total, next)) {
          total = folded;
          continue;
        }
      }
      const Dims dims = total->dims;
      const auto none = [](hlo::ValueId) -> Tensor { return nullptr; };
      Call call{module_, op_, {}, none};
      Outcome out =
          runBatched(call, module_.op(op_).regions[0],
                     {reshaped(total, {total->numElements()}), reshaped(next, {next->numElements()})});
      if (!out) return out.takeError();
      total = reshaped((*out)[0], dims);
    }
    return convertTo(total, element);
  }

  llvm::Expected<Tensors> reduceAll(llvm::ArrayRef<Tensor> members) const {
    auto total = fold(members);
    if (!total) return total.takeError();
    return everyone(members.size(), *total);
  }

  llvm::Expected<Tensors> reduceScatter(llvm::ArrayRef<Tensor> members) const {
    auto total = fold(members);
    if (!total) return total.takeError();
    Tensors out;
    for (size_t i = 0; i < members.size(); ++i)
      out.push_back(part(*total, integer(AttrKey::scatter_dimension), members.size(), i));
    return out;
  }

  llvm::Expected<Tensors> allToAll(llvm::ArrayRef<Tensor> members) const {
    const int64_t split = integer(AttrKey::split_dimension), count = static_cast<int64_t>(members.size());
    if (members[0]->dims[split] % count != 0)
      return fail(Code::kEvalBadOperand, loc(),
                  "all_to_all: the split dimension does not divide by the group");
    Tensors out;
    for (int64_t i = 0; i < count; ++i) {
      Tensors parts;
      for (const Tensor& t : members) parts.push_back(part(t, split, count, i));
      out.push_back(join(parts, integer(AttrKey::concat_dimension)));
    }
    return out;
  }

  const hlo::Module& module_;
  hlo::OpId op_;
};

// One group over everybody gives all the same tensor: held once.
Lanes lanesOf(std::vector<Tensor> per_device, const Team& team) {
  Lanes out;
  bool same = true;
  for (int64_t d : team.devices) same = same && per_device[d] == per_device[team.devices.front()];
  if (same) return Lanes(per_device[team.devices.front()]);
  out.copies.assign(per_device.begin(), per_device.end());
  return out;
}

// Source and target devices.
llvm::Expected<std::vector<std::pair<int64_t, int64_t>>> permutePairs(const Interpreter& interpreter,
                                                                      const hlo::Module& module, hlo::OpId op,
                                                                      llvm::ArrayRef<DeviceGroup> groups) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  const hlo::Attr* listed = module.findAttr(op, AttrKey::source_target_pairs);
  if (!listed)
    return fail(Code::kEvalBadOperand, module.loc(module.op(op).loc), "collective_permute without pairs");
  for (const DeviceGroup& group : groups)
    for (int64_t i = 0; i < listed->groups.rows; ++i) {
      const int64_t source = listed->groups.ids[2 * i], target = listed->groups.ids[2 * i + 1];
      const int64_t size = static_cast<int64_t>(group.size());
      if (source < 0 || target < 0 || source >= size || target >= size)
        return fail(Code::kEvalBadOperand, module.loc(module.op(op).loc),
                    "collective_permute names a device that does not exist");
      pairs.emplace_back(group[source], group[target]);
    }
  return pairs;
}

}  // namespace

LanesOutcome Interpreter::runCollective(hlo::OpId id, LaneList in, const Team& team) {
  auto groups = collectiveGroups(*this, module_, id);
  if (!groups) return groups.takeError();
  const bool permute = module_.op(id).opcode == Opcode::collective_permute;
  LaneList out;
  if (permute) {
    auto pairs = permutePairs(*this, module_, id, *groups);
    if (!pairs) return pairs.takeError();
    for (const auto& [source, target] : *pairs) {
      if (team.has(source) == team.has(target)) continue;
      return team.has(source) ? hang(module_, id, source, target) : hang(module_, id, target, source);
    }
    for (const Lanes& operand : in) {
      const Tensor like = operand.at(team.devices.front());
      const Tensor zeros = makeTensor(like->element, like->dims);
      std::vector<Tensor> results(devices_, zeros);
      for (const auto& [source, target] : *pairs)
        if (team.has(source)) results[target] = operand.at(source);
      out.push_back(lanesOf(std::move(results), team));
    }
    return out;
  }
  for (const DeviceGroup& group : *groups) {
    const auto present = std::find_if(group.begin(), group.end(), [&](int64_t d) { return team.has(d); });
    const auto missing = std::find_if(group.begin(), group.end(), [&](int64_t d) { return !team.has(d); });
    if (present != group.end() && missing != group.end()) return hang(module_, id, *present, *missing);
  }
  const Collective collective(module_, id);
  for (const Lanes& operand : in) {
    std::vector<Tensor> results(devices_);
    for (const DeviceGroup& group : *groups) {
      if (!team.has(group.front())) continue;
      Tensors members;
      for (int64_t d : group) members.push_back(operand.at(d));
      auto made = collective.run(members);
      if (!made) return made.takeError();
      for (size_t i = 0; i < group.size(); ++i) results[group[i]] = (*made)[i];
    }
    for (int64_t d : team.devices)
      if (!results[d])
        return fail(Code::kEvalBadOperand, locOf(id),
                    llvm::Twine("device ") + llvm::Twine(d) + " is in no group of this collective");
    out.push_back(lanesOf(std::move(results), team));
  }
  return out;
}

}  // namespace tpu::eval
