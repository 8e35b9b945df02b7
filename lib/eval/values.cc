// Helpers on tensors and regions.
#include "values.h"

#include <cstring>

#include "tpu/hlo/quantized.h"

namespace tpu::eval {

llvm::Error unsupported(const Call& call, const llvm::Twine& what) {
  return fail(Code::kEvalUnsupported, call.loc(), "the evaluator does not take " + call.name() + " " + what);
}

llvm::Error badOperand(const Call& call, const llvm::Twine& what) {
  return fail(Code::kEvalBadOperand, call.loc(), call.name() + ": " + what);
}

int64_t integerAt(const HostTensor& t, int64_t i) {
  const uint8_t* p = t.bytes.data() + i * hostBytes(t.element);
  switch (hostBytes(t.element)) {
    case 1:
      return isSigned(t.element) ? static_cast<int8_t>(*p) : *p;
    case 2: {
      uint16_t v;
      std::memcpy(&v, p, 2);
      return isSigned(t.element) ? static_cast<int16_t>(v) : v;
    }
    case 4: {
      uint32_t v;
      std::memcpy(&v, p, 4);
      return isSigned(t.element) ? int64_t{static_cast<int32_t>(v)} : int64_t{v};
    }
    default: {
      int64_t v;
      std::memcpy(&v, p, 8);
      return v;
    }
  }
}

Dims integersOf(const HostTensor& t) {
  Dims out;
  for (int64_t i = 0; i < t.numElements(); ++i) out.push_back(integerAt(t, i));
  return out;
}

void fillWith(HostTensor& t, const uint8_t* element) {
  if (t.bytes.empty()) return;
  const size_t width = hostBytes(t.element);
  if (width == 1) {
    std::memset(t.bytes.data(), *element, t.bytes.size());
    return;
  }
  std::memcpy(t.bytes.data(), element, width);
  for (size_t done = width; done < t.bytes.size(); done *= 2)
    std::memcpy(t.bytes.data() + done, t.bytes.data(), std::min(done, t.bytes.size() - done));
}

double numberAt(const HostTensor& t, int64_t i) {
  HostTensor one(t.element, {});
  std::copy_n(t.bytes.data() + i * hostBytes(t.element), hostBytes(t.element), one.bytes.data());
  return *convertTo(std::make_shared<HostTensor>(one), ElementType::kF64)->data<double>();
}

Tensor splatTo(const Tensor& t, llvm::ArrayRef<int64_t> dims) {
  if (t->rank() != 0 || dims.empty()) return t;
  Tensor out = rawTensor(t->element, dims);
  fillWith(*out, t->bytes.data());
  return out;
}

Tensor scalarOf(ElementType element, double value) {
  Tensor t = makeTensor(ElementType::kF64, {});
  *t->data<double>() = value;
  return convertTo(t, element);
}

Tensor reshaped(Tensor t, llvm::ArrayRef<int64_t> dims) {
  Tensor out = own(t);
  out->dims.assign(dims.begin(), dims.end());
  return out;
}

std::optional<Opcode> singleOp(const hlo::Module& module, hlo::RegionId region) {
  const hlo::Region& r = module.region(region);
  if (r.args.size() != 2 || r.ops.size() != 2) return std::nullopt;
  const hlo::Op& op = module.op(r.ops[0]);
  const hlo::Op& end = module.op(r.ops[1]);
  if (op.operands.size() != 2 || op.results.size() != 1 || end.operands.size() != 1) return std::nullopt;
  if (end.operands[0] != op.results[0]) return std::nullopt;
  const bool in_order = op.operands[0] == r.args[0] && op.operands[1] == r.args[1];
  const bool swapped = op.operands[0] == r.args[1] && op.operands[1] == r.args[0];
  if (!in_order && !(swapped && hlo::hasTrait(op.opcode, hlo::kCommutative))) return std::nullopt;
  if (module.typeOf(op.results[0]).element != module.typeOf(r.args[0]).element) return std::nullopt;
  if (hlo::isQuantized(module.typeOf(r.args[0])))
    return std::nullopt;  // its op is more than that on the storage
  return op.opcode;
}

bool returnsSecond(const hlo::Module& module, hlo::RegionId region) {
  const hlo::Region& r = module.region(region);
  if (r.args.size() != 2 || r.ops.size() != 1) return false;
  const hlo::Op& end = module.op(r.ops[0]);
  return end.operands.size() == 1 && end.operands[0] == r.args[1];
}

}  // namespace tpu::eval
