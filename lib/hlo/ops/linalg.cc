// Rules of matrix factorisations, triangular solve, Fourier transform and batch normalisation.
#include "check.h"

namespace tpu::hlo {
namespace {

llvm::Error needMatrices(OpCheck& c, size_t operand) {
  const Type& type = c.in(operand);
  if (!isFloat(type.element) && !isComplex(type.element))
    return c.fail("does not take " + elementTypeName(type.element));
  bool square = type.rank() >= 2;
  if (square) {
    int64_t a = type.dims[type.dims.size() - 2], b = type.dims.back();
    square = a == b || a == kDynamicDim || b == kDynamicDim;
  }
  return square ? llvm::Error::success()
                : c.fail("operand is " + c.text(type) + ", expected square matrices");
}

}  // namespace

llvm::Error ruleCholesky(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = needMatrices(c, 0)) return e;
  c.yield(c.in(0));
  return llvm::Error::success();
}

llvm::Error ruleTriangularSolve(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = needMatrices(c, 0)) return e;
  const Type& a = c.in(0);
  const Type& b = c.in(1);
  bool fits = a.element == b.element && a.rank() == b.rank();
  if (fits) {
    size_t rank = a.dims.size();
    int64_t side = b.dims[c.num(AttrKey::left_side) ? rank - 2 : rank - 1];
    fits = side == a.dims.back() || side == kDynamicDim || a.dims.back() == kDynamicDim;
    fits = fits && compatibleDims(llvm::ArrayRef<int64_t>(a.dims).drop_back(2),
                                  llvm::ArrayRef<int64_t>(b.dims).drop_back(2));
  }
  if (!fits) return c.fail("cannot solve " + c.text(a) + " against " + c.text(b));
  c.yield(b);
  return llvm::Error::success();
}

llvm::Error ruleFft(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  Type type = c.in(0);
  llvm::ArrayRef<int64_t> length = c.ints(AttrKey::fft_length);
  if (length.empty() || length.size() > 3 || static_cast<int64_t>(length.size()) > type.rank())
    return c.fail("fft_length " + listText(length) + " does not fit " + c.text(type));
  FftType kind = static_cast<FftType>(c.num(AttrKey::fft_type));
  bool real_in = kind == FftType::kRfft;
  if (real_in ? !isFloat(type.element) : !isComplex(type.element))
    return c.fail("does not take " + elementTypeName(type.element));
  for (size_t i = 0; i < length.size(); ++i) {
    int64_t size = type.dims[type.dims.size() - length.size() + i];
    bool half = kind == FftType::kIrfft && i + 1 == length.size();
    int64_t expected = half ? (length[i] == 0 ? 0 : length[i] / 2 + 1) : length[i];
    if (size != expected && size != kDynamicDim)
      return c.fail("fft_length " + listText(length) + " does not fit " + c.text(type));
  }
  if (kind == FftType::kRfft) {
    type.element = type.element == ElementType::kF32 ? ElementType::kC64 : ElementType::kC128;
    type.dims.back() = length.back() == 0 ? 0 : length.back() / 2 + 1;
  } else if (kind == FftType::kIrfft) {
    type.element = type.element == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
    type.dims.back() = length.back();
  }
  c.yield(std::move(type));
  return llvm::Error::success();
}

// All three forms: operand, then per-feature vectors; the gradient also takes grad_output of the operand's
// shape.
llvm::Error ruleBatchNorm(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  const Type& operand = c.in(0);
  if (!isFloat(operand.element)) return c.fail("does not take " + elementTypeName(operand.element));
  if (auto e = c.needDim(AttrKey::feature_index, operand.rank())) return e;
  int64_t features = operand.dims[static_cast<size_t>(c.num(AttrKey::feature_index))];
  bool gradient = c.op.opcode == Opcode::batch_norm_grad;
  size_t vectors_end = gradient ? c.numIn() - 1 : c.numIn();
  for (size_t i = 1; i < vectors_end; ++i)
    if (!compatibleDims(c.in(i).dims, {features}))
      return c.fail("operand " + llvm::Twine(i) + " is " + c.text(c.in(i)) + ", expected " +
                    llvm::Twine(features) + " features");
  if (gradient)
    if (auto e = c.needSameDims(0, 4)) return e;
  c.yield(operand);
  if (c.op.opcode == Opcode::batch_norm_inference) return llvm::Error::success();
  c.yield(c.in(1).element, {features});
  c.yield(c.in(1).element, {features});
  return llvm::Error::success();
}

}  // namespace tpu::hlo
