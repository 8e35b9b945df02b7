// Quantized tensors: storage integers in memory, meaning (storage - zero point) * scale.
//
// An op on them is what the specification says: its operands dequantized, the op in the expressed type, its
// result quantized. Ops that only move elements, and those whose regions compute, work on the storage as it
// is.
#include "tpu/hlo/quantized.h"

#include <algorithm>

#include "tpu/eval/math.h"
#include "tpu/hlo/literal.h"
#include "values.h"

namespace tpu::eval {
namespace {

using hlo::Quantization;

double rounded(ElementType type, double x) {
  return type == ElementType::kF64 ? x : hlo::decodeFloat(type, hlo::encodeFloat(type, x));
}

// Calls fn(element, scale index) for all elements of an array.
void forEachElement(const Quantization& q, llvm::ArrayRef<int64_t> dims, int64_t count,
                    llvm::function_ref<void(int64_t, size_t)> fn) {
  Dims index(dims.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    fn(i, q.axes.empty() ? 0 : hlo::scaleIndex(q, index));
    for (size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
}

Tensor dequantized(const Tensor& in, const Quantization& q) {
  Tensor out = makeTensor(q.expressed, in->dims);
  const int from = hostBytes(in->element), to = hostBytes(q.expressed);
  forEachElement(q, in->dims, in->numElements(), [&](int64_t i, size_t s) {
    const int64_t storage = hlo::loadInt(in->element, in->bytes.data() + i * from) - q.zero_points[s];
    const double scale = rounded(q.expressed, q.scales[s]);
    hlo::storeDouble(q.expressed, rounded(q.expressed, static_cast<double>(storage)) * scale,
                     out->bytes.data() + i * to);
  });
  return out;
}

Tensor quantized(const Tensor& in, const Quantization& q) {
  Tensor out = makeTensor(q.storage, in->dims);
  const int from = hostBytes(in->element), to = hostBytes(q.storage);
  const ElementType e = q.expressed;
  const double low = rounded(e, static_cast<double>(q.min)), high = rounded(e, static_cast<double>(q.max));
  forEachElement(q, in->dims, in->numElements(), [&](int64_t i, size_t s) {
    const double x = hlo::loadDouble(in->element, in->bytes.data() + i * from);
    double v = rounded(e, x / rounded(e, q.scales[s]));
    v = rounded(e, v + rounded(e, static_cast<double>(q.zero_points[s])));
    const double nearest = v != v ? 0 : math::roundHalfEven(std::clamp(v, low, high));
    hlo::storeInt(q.storage, std::clamp<int64_t>(static_cast<int64_t>(nearest), q.min, q.max),
                  out->bytes.data() + i * to);
  });
  return out;
}

// Ops that give back the bytes they get.
bool worksOnStorage(const Call& call) {
  switch (call.opcode()) {
    case Opcode::bitcast_convert:
    case Opcode::reduce:
    case Opcode::reduce_window:
    case Opcode::select_and_scatter:
    case Opcode::scatter:
    case Opcode::sort:
    case Opcode::map:
    case Opcode::select:
      return true;
    default:
      return hlo::hasTrait(call.opcode(), hlo::kDataMovement);
  }
}

}  // namespace

bool isQuantizedCall(const Call& call) {
  const auto quantized = [&](hlo::ValueId v) {
    const hlo::Type& type = call.module.typeOf(v);
    return !type.encoding.empty() && hlo::isQuantized(type);
  };
  return llvm::any_of(call.op().operands, quantized) || llvm::any_of(call.op().results, quantized);
}

Outcome quantizedOp(Call& call) {
  llvm::SmallVector<hlo::Type, 2> types;
  llvm::SmallVector<std::optional<Quantization>, 2> wanted;
  for (hlo::ValueId v : call.op().results) {
    types.push_back(call.module.typeOf(v));
    wanted.emplace_back();
    if (!hlo::isQuantized(types.back())) continue;
    wanted.back() = hlo::parseQuantization(types.back().encoding);
    if (!wanted.back()) return unsupported(call, "with " + types.back().encoding);
    if (worksOnStorage(call)) continue;
    types.back().element = wanted.back()->expressed;
    types.back().encoding.clear();
  }
  if (!worksOnStorage(call)) {
    for (size_t i = 0; i < call.in.size(); ++i) {
      const hlo::Type& type = call.module.typeOf(call.op().operands[i]);
      if (!hlo::isQuantized(type)) continue;
      const auto q = hlo::parseQuantization(type.encoding);
      if (!q) return unsupported(call, "with " + type.encoding);
      call.in[i] = dequantized(call.in[i], *q);
    }
  }
  Outcome out = Tensors{};
  if (call.opcode() == Opcode::uniform_quantize || call.opcode() == Opcode::uniform_dequantize) {
    out = Tensors{call.in[0]};
  } else {
    Call plain = call;
    plain.given = types;
    out = runKernel(plain);
  }
  if (!out) return out;
  if (worksOnStorage(call)) return out;
  for (size_t i = 0; i < out->size(); ++i)
    if (wanted[i]) (*out)[i] = quantized((*out)[i], *wanted[i]);
  return out;
}

}  // namespace tpu::eval
