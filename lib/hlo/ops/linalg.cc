// Rules of matrix factorisations, triangular solve, Fourier transform and batch normalisation.
#include "check.h"

namespace tpu::hlo {
namespace {

llvm::Error needMatrices(OpCheck& c, Label rank, Label square) {
  const Type& type = c.in(0);
  if (!isFloat(type.element) && !isComplex(type.element))
    return c.fail(I(1), "does not take " + elementTypeName(type.element));
  if (type.rank() < 2) return c.fail(rank, "operand is " + c.text(type) + ", expected square matrices");
  int64_t a = type.dims[type.dims.size() - 2], b = type.dims.back();
  if (a == b || a == kDynamicDim || b == kDynamicDim) return llvm::Error::success();
  return c.fail(square, "operand is " + c.text(type) + ", expected square matrices");
}

}  // namespace

llvm::Error ruleCholesky(OpCheck& c) {
  c.resultsBy(C(1), C(1));
  if (auto e = c.needTensors()) return e;
  if (auto e = needMatrices(c, C(2), C(3))) return e;
  c.yield(c.in(0));
  return llvm::Error::success();
}

llvm::Error ruleTriangularSolve(OpCheck& c) {
  c.resultsBy(C(4), C(4));
  if (auto e = c.needTensors()) return e;
  constexpr AttrKey kFlags[] = {AttrKey::left_side, AttrKey::lower, AttrKey::unit_diagonal, AttrKey::transpose_a};
  for (size_t i = 0; i < 4; ++i)
    if (auto e = c.needAttr(kFlags[i], I(3 + i))) return e;
  if (auto e = needMatrices(c, C(2), C(3))) return e;
  const Type& a = c.in(0);
  const Type& b = c.in(1);
  Label broken;
  if (a.element != b.element) {
    broken = C(1);
  } else if (a.rank() != b.rank()) {
    broken = C(2);
  } else {
    size_t rank = a.dims.size();
    int64_t side = b.dims[c.num(AttrKey::left_side) ? rank - 2 : rank - 1];
    bool fits = side == a.dims.back() || side == kDynamicDim || a.dims.back() == kDynamicDim;
    fits = fits && compatibleDims(llvm::ArrayRef<int64_t>(a.dims).drop_back(2),
                                  llvm::ArrayRef<int64_t>(b.dims).drop_back(2));
    if (!fits) broken = C(3);
  }
  if (broken.list) return c.fail(broken, "cannot solve " + c.text(a) + " against " + c.text(b));
  c.yield(b);
  return llvm::Error::success();
}

llvm::Error ruleFft(OpCheck& c) {
  c.resultsBy(C(2), C(5));
  if (auto e = c.needTensors()) return e;
  Type type = c.in(0);
  llvm::ArrayRef<int64_t> length = c.ints(AttrKey::fft_length);
  auto misfit = [&](Label label) {
    return c.fail(label, "fft_length " + listText(length) + " does not fit " + c.text(c.in(0)));
  };
  if (length.empty() || length.size() > 3) return misfit(C(3));
  if (static_cast<int64_t>(length.size()) > type.rank()) return misfit(C(1));
  FftType kind = static_cast<FftType>(c.num(AttrKey::fft_type));
  bool real_in = kind == FftType::kRfft;
  if (real_in ? !isFloat(type.element) : !isComplex(type.element))
    return c.fail(C(2), "does not take " + elementTypeName(type.element));
  for (size_t i = 0; i < length.size(); ++i) {
    int64_t size = type.dims[type.dims.size() - length.size() + i];
    bool half = kind == FftType::kIrfft && i + 1 == length.size();
    int64_t expected = half ? (length[i] == 0 ? 0 : length[i] / 2 + 1) : length[i];
    if (size != expected && size != kDynamicDim) return misfit(C(half ? 5 : 4));
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
  const bool gradient = c.op.opcode == Opcode::batch_norm_grad;
  c.resultsBy(C(2), C(gradient ? 3 : 7));
  if (auto e = c.needTensors()) return e;
  const Type& operand = c.in(0);
  if (!isFloat(operand.element)) return c.fail(I(1), "does not take " + elementTypeName(operand.element));
  if (auto e = c.needDim(AttrKey::feature_index, operand.rank(), C(1))) return e;
  int64_t features = operand.dims[static_cast<size_t>(c.num(AttrKey::feature_index))];
  for (size_t i = 1; i < c.numIn(); ++i)
    if (auto e = c.needSameElement(0, i, C(2))) return e;
  size_t vectors_end = gradient ? c.numIn() - 1 : c.numIn();
  for (size_t i = 1; i < vectors_end; ++i) {
    // The gradient numbers scale's size apart from the vectors that are like scale.
    const Label label = gradient ? C(i == 1 ? 5 : 4) : C(2 + i);
    if (!compatibleDims(c.in(i).dims, {features}))
      return c.fail(c.in(i).rank() == 1 ? label : I(i + 1), "operand " + llvm::Twine(i) + " is " +
                                                                c.text(c.in(i)) + ", expected " +
                                                                llvm::Twine(features) + " features");
  }
  if (gradient)
    if (auto e = c.needSameDims(0, 4, C(3))) return e;
  c.yield(operand);
  if (c.op.opcode == Opcode::batch_norm_inference) return llvm::Error::success();
  for (size_t i : {1, 2}) {
    if (i < c.numOut() && c.out(i).kind == TypeKind::kTensor && !compatibleDims(c.out(i).dims, {features}))
      return c.fail(C(gradient ? 4 : 4 + i), "result " + llvm::Twine(i) + " is " + c.text(c.out(i)) +
                                                 ", expected " + llvm::Twine(features) + " features");
    c.yield(c.in(1).element, {features});
  }
  return llvm::Error::success();
}

}  // namespace tpu::hlo
