// The rule of convolution and dynamic_conv, whose constraints bear the same numbers: dimension roles, groups,
// window.
#include "quantization.h"
#include "window.h"

namespace tpu::hlo {
namespace {

// Checks that two named dims and the spatial ones name each dimension of a rank once.
llvm::Error needRoles(OpCheck& c, AttrKey first, AttrKey second, AttrKey spatial, int64_t rank, size_t size,
                      size_t roles) {
  llvm::SmallVector<bool, 8> seen(static_cast<size_t>(rank), false);
  llvm::SmallVector<int64_t, 6> dims(c.ints(spatial).begin(), c.ints(spatial).end());
  dims.push_back(c.num(first, -1));
  dims.push_back(c.num(second, -1));
  const bool sized = static_cast<int64_t>(dims.size()) == rank;
  bool fits = true;
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= rank || seen[static_cast<size_t>(dim)])
      fits = false;
    else
      seen[static_cast<size_t>(dim)] = true;
  }
  if (sized && fits) return llvm::Error::success();
  return c.fail(C(sized ? roles : size), attrName(first) + ", " + attrName(second) + " and " +
                                             attrName(spatial) + " do not name each of " + llvm::Twine(rank) +
                                             " dimensions once");
}

llvm::Error needAllRoles(OpCheck& c, int64_t rank) {
  if (auto e = needRoles(c, AttrKey::input_batch_dimension, AttrKey::input_feature_dimension,
                         AttrKey::input_spatial_dimensions, rank, 12, 13))
    return e;
  if (auto e = needRoles(c, AttrKey::kernel_input_feature_dimension, AttrKey::kernel_output_feature_dimension,
                         AttrKey::kernel_spatial_dimensions, rank, 17, 18))
    return e;
  return needRoles(c, AttrKey::output_batch_dimension, AttrKey::output_feature_dimension,
                   AttrKey::output_spatial_dimensions, rank, 19, 20);
}

int64_t dimOf(OpCheck& c, size_t operand, AttrKey key) {
  return c.in(operand).dims[static_cast<size_t>(c.num(key))];
}

llvm::Error needGroups(OpCheck& c) {
  if (auto e = c.needAttr(AttrKey::feature_group_count, I(17))) return e;
  if (auto e = c.needAttr(AttrKey::batch_group_count, I(18))) return e;
  int64_t features = c.num(AttrKey::feature_group_count, 1), batches = c.num(AttrKey::batch_group_count, 1);
  if (features < 1)
    return c.fail(C(21), "feature_group_count = " + llvm::Twine(features) + " must be positive");
  if (batches < 1) return c.fail(C(22), "batch_group_count = " + llvm::Twine(batches) + " must be positive");
  if (features > 1 && batches > 1)
    return c.fail(C(23), "has " + llvm::Twine(features) + " feature groups and " + llvm::Twine(batches) +
                             " batch groups; one of them must be 1");
  int64_t in_batch = dimOf(c, 0, AttrKey::input_batch_dimension);
  int64_t in_features = dimOf(c, 0, AttrKey::input_feature_dimension);
  int64_t k_in = dimOf(c, 1, AttrKey::kernel_input_feature_dimension);
  int64_t k_out = dimOf(c, 1, AttrKey::kernel_output_feature_dimension);
  if (in_batch != kDynamicDim && in_batch % batches != 0)
    return c.fail(C(10), "batch of " + llvm::Twine(in_batch) + " does not divide into " +
                             llvm::Twine(batches) + " groups");
  if (in_features != kDynamicDim) {
    if (in_features % features != 0)
      return c.fail(C(11), "input has " + llvm::Twine(in_features) + " features, which do not divide into " +
                               llvm::Twine(features) + " groups");
    if (k_in != kDynamicDim && in_features / features != k_in)
      return c.fail(C(14), "input has " + llvm::Twine(in_features) + " features in " + llvm::Twine(features) +
                               " groups, the kernel takes " + llvm::Twine(k_in));
  }
  if (k_out != kDynamicDim && (k_out % batches != 0 || k_out % features != 0))
    return c.fail(C(k_out % batches ? 15 : 16),
                  "output features (" + llvm::Twine(k_out) + ") do not divide into the groups");
  return llvm::Error::success();
}

llvm::Error needElements(OpCheck& c) {
  if (!anyQuantized(c)) return c.needSameKind(C(27));
  const int64_t of_kernel = scalesAlong(c.in(1));
  if (of_kernel >= 0 && of_kernel != c.num(AttrKey::kernel_output_feature_dimension))
    return c.fail(C(29), "scales of the kernel vary along dimension " + llvm::Twine(of_kernel) +
                             ", which is not that of output features");
  const int64_t of_result = c.numOut() == 1 ? scalesAlong(c.out(0)) : -1;
  if (of_result >= 0 && of_result != c.num(AttrKey::output_feature_dimension))
    return c.fail(C(30), "scales of the result vary along dimension " + llvm::Twine(of_result) +
                             ", which is not that of features");
  return needContractionQuantization(c, C(28), 31);
}

// Padding of dynamic_conv: an operand of a row per spatial dimension; its values where it is a constant.
llvm::Error needPaddingOperand(OpCheck& c, size_t spatial,
                               std::optional<llvm::SmallVector<int64_t, 6>>& padding) {
  const Type& type = c.in(2);
  if (type.rank() != 2 || !isInteger(type.element))
    return c.fail(I(3), "padding is " + c.text(type) + ", expected rows of two integers");
  if (!compatibleDims(type.dims, {static_cast<int64_t>(spatial), 2}))
    return c.fail(C(4), "padding is " + c.text(type) + ", expected " + llvm::Twine(spatial) + " rows of two");
  padding = c.constantInts(2);
  return llvm::Error::success();
}

constexpr WindowLabels kLabels = {C(2), C(3), C(5), C(6), C(7), C(8), C(4)};

}  // namespace

llvm::Error ruleConvolution(OpCheck& c) {
  c.resultsBy({}, C(25));
  if (auto e = c.needTensors()) return e;
  const Type& lhs = c.in(0);
  const Type& rhs = c.in(1);
  if (lhs.rank() != rhs.rank())
    return c.fail(C(1), "operands differ in rank: " + c.text(lhs) + " and " + c.text(rhs));
  int64_t rank = lhs.rank();
  if (rank < 2)
    return c.fail(C(13), "operand is " + c.text(lhs) + ", expected a batch and a feature dimension");
  if (auto e = needAllRoles(c, rank)) return e;
  size_t spatial = static_cast<size_t>(rank - 2);
  if (auto e = needWindow(c, kConvolutionKeys, spatial, kLabels)) return e;
  if (c.has(AttrKey::window_reversal) && !c.ints(AttrKey::window_reversal).empty())
    if (auto e = c.needLength(AttrKey::window_reversal, spatial, C(9))) return e;
  if (auto e = needGroups(c)) return e;
  if (auto e = c.needPrecisions(C(24))) return e;
  if (auto e = needElements(c)) return e;

  std::optional<llvm::SmallVector<int64_t, 6>> padding;
  const bool dynamic = c.op.opcode == Opcode::dynamic_conv;
  if (dynamic) {
    if (auto e = needPaddingOperand(c, spatial, padding)) return e;
  } else {
    padding.emplace(c.ints(AttrKey::padding).begin(), c.ints(AttrKey::padding).end());
  }
  int64_t in_batch = dimOf(c, 0, AttrKey::input_batch_dimension);
  Dims dims(static_cast<size_t>(rank));
  dims[static_cast<size_t>(c.num(AttrKey::output_batch_dimension))] =
      in_batch == kDynamicDim ? in_batch : in_batch / c.num(AttrKey::batch_group_count, 1);
  dims[static_cast<size_t>(c.num(AttrKey::output_feature_dimension))] =
      dimOf(c, 1, AttrKey::kernel_output_feature_dimension);
  for (size_t i = 0; i < spatial; ++i) {
    int64_t size = lhs.dims[static_cast<size_t>(c.ints(AttrKey::input_spatial_dimensions)[i])];
    int64_t window = rhs.dims[static_cast<size_t>(c.ints(AttrKey::kernel_spatial_dimensions)[i])];
    dims[static_cast<size_t>(c.ints(AttrKey::output_spatial_dimensions)[i])] =
        padding ? windowPositions(c, kConvolutionKeys, *padding, i, size, window) : kDynamicDim;
  }
  if (c.numOut() == 1 && c.out(0).rank() != rank)
    return c.fail(C(26), "result is " + c.text(c.out(0)) + " for operands of rank " + llvm::Twine(rank));
  c.yield(c.numOut() == 1 ? c.out(0).element : lhs.element, dims);
  return llvm::Error::success();
}

}  // namespace tpu::hlo
