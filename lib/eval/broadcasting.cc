// CHLO ops that spread their operands first: chlo.broadcast_add and its kin, chlo.constant_like.
#include <map>

#include "tpu/eval/literal.h"
#include "values.h"

namespace tpu::eval {
namespace {

Opcode plainOf(Opcode op) {
  switch (op) {
    case Opcode::chlo_broadcast_and:
      return Opcode::and_;
    case Opcode::chlo_broadcast_or:
      return Opcode::or_;
    case Opcode::chlo_broadcast_xor:
      return Opcode::xor_;
    default: {
      const llvm::StringRef name = hlo::opInfo(op).name.drop_front(llvm::StringRef("chlo.broadcast_").size());
      auto plain = hlo::findOpcode(("stablehlo." + name).str());
      return plain ? *plain : *hlo::findOpcode(("chlo." + name).str());
    }
  }
}

}  // namespace

// An operand of lower rank is placed by broadcast_dimensions, else at the last dimensions; size 1 stretches.
Outcome broadcasting(Call& call) {
  int64_t rank = 0;
  for (const Tensor& t : call.in) rank = std::max(rank, t->rank());
  const llvm::ArrayRef<int64_t> placed = call.ints(AttrKey::broadcast_dimensions);
  const auto mapOf = [&](const Tensor& t) {
    if (static_cast<int64_t>(placed.size()) == t->rank() && t->rank() < rank)
      return Dims(placed.begin(), placed.end());
    Dims map;
    for (int64_t d = 0; d < t->rank(); ++d) map.push_back(rank - t->rank() + d);
    return map;
  };
  Dims dims(static_cast<size_t>(rank), 1);
  for (const Tensor& t : call.in) {
    const Dims map = mapOf(t);
    for (size_t d = 0; d < map.size(); ++d) {
      int64_t& size = dims[static_cast<size_t>(map[d])];
      if (size == 1) size = t->dims[d];
      if (t->dims[d] != 1 && t->dims[d] != size)
        return badOperand(
            call, "dimensions of " + llvm::Twine(size) + " and " + llvm::Twine(t->dims[d]) + " differ");
    }
  }
  for (Tensor& t : call.in)
    if (llvm::ArrayRef<int64_t>(t->dims) != llvm::ArrayRef<int64_t>(dims))
      t = broadcastInDim(t, mapOf(t), dims);
  Call plain = call;
  plain.as = plainOf(call.opcode());
  return runKernel(plain);
}

Outcome constantLike(Call& call) {
  const hlo::Attr* value = call.module.findAttr(call.id, AttrKey::value);
  if (!value) return unsupported(call, "without a value");
  const Tensor scalar = std::make_shared<HostTensor>(literalTensor(call.module, value->literal));
  return Tensors{broadcastInDim(convertTo(scalar, call.resultElement()), {}, call.in[0]->dims)};
}

}  // namespace tpu::eval
