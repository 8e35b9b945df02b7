// The rule of convolution: dimension roles, groups, window.
#include "window.h"

namespace tpu::hlo {
namespace {

// Checks that two named dims and the spatial ones name each dimension of a rank once.
llvm::Error needRoles(OpCheck& c, AttrKey first, AttrKey second, AttrKey spatial, int64_t rank) {
  llvm::SmallVector<bool, 8> seen(static_cast<size_t>(rank), false);
  llvm::SmallVector<int64_t, 6> dims(c.ints(spatial).begin(), c.ints(spatial).end());
  dims.push_back(c.num(first, -1));
  dims.push_back(c.num(second, -1));
  bool fits = static_cast<int64_t>(dims.size()) == rank;
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= rank || seen[static_cast<size_t>(dim)])
      fits = false;
    else
      seen[static_cast<size_t>(dim)] = true;
  }
  if (fits) return llvm::Error::success();
  return c.fail(attrName(first) + ", " + attrName(second) + " and " + attrName(spatial) +
                " do not name each of " + llvm::Twine(rank) + " dimensions once");
}

}  // namespace

llvm::Error ruleConvolution(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  const Type& lhs = c.in(0);
  const Type& rhs = c.in(1);
  if (lhs.rank() != rhs.rank())
    return c.fail("operands differ in rank: " + c.text(lhs) + " and " + c.text(rhs));
  int64_t rank = lhs.rank();
  if (auto e = needRoles(c, AttrKey::input_batch_dimension, AttrKey::input_feature_dimension,
                         AttrKey::input_spatial_dimensions, rank))
    return e;
  if (auto e = needRoles(c, AttrKey::kernel_input_feature_dimension, AttrKey::kernel_output_feature_dimension,
                         AttrKey::kernel_spatial_dimensions, rank))
    return e;
  if (auto e = needRoles(c, AttrKey::output_batch_dimension, AttrKey::output_feature_dimension,
                         AttrKey::output_spatial_dimensions, rank))
    return e;
  size_t spatial = static_cast<size_t>(rank - 2);
  if (auto e = needWindow(c, kConvolutionKeys, spatial)) return e;

  auto dim = [&](const Type& type, AttrKey key) { return type.dims[static_cast<size_t>(c.num(key))]; };
  int64_t features = c.num(AttrKey::feature_group_count, 1), batches = c.num(AttrKey::batch_group_count, 1);
  if (features < 1 || batches < 1 || (features > 1 && batches > 1))
    return c.fail("group counts must be positive, and only one above 1");
  int64_t in_features = dim(lhs, AttrKey::input_feature_dimension),
          in_batch = dim(lhs, AttrKey::input_batch_dimension);
  int64_t k_in = dim(rhs, AttrKey::kernel_input_feature_dimension),
          k_out = dim(rhs, AttrKey::kernel_output_feature_dimension);
  int64_t taken;
  bool overflows = __builtin_mul_overflow(k_in, features, &taken);
  if (in_features != kDynamicDim && k_in != kDynamicDim && (overflows || in_features != taken))
    return c.fail("input has " + llvm::Twine(in_features) + " features, kernel takes " + llvm::Twine(k_in) +
                  " in " + llvm::Twine(features) + " groups");
  if (k_out % (features * batches) != 0) return c.fail("output features do not divide into the groups");
  if (in_batch != kDynamicDim && in_batch % batches != 0)
    return c.fail("batch does not divide into the groups");

  Dims dims(static_cast<size_t>(rank));
  dims[static_cast<size_t>(c.num(AttrKey::output_batch_dimension))] =
      in_batch == kDynamicDim ? in_batch : in_batch / batches;
  dims[static_cast<size_t>(c.num(AttrKey::output_feature_dimension))] = k_out;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t size = lhs.dims[static_cast<size_t>(c.ints(AttrKey::input_spatial_dimensions)[i])];
    int64_t window = rhs.dims[static_cast<size_t>(c.ints(AttrKey::kernel_spatial_dimensions)[i])];
    dims[static_cast<size_t>(c.ints(AttrKey::output_spatial_dimensions)[i])] =
        windowPositions(c, kConvolutionKeys, i, size, window);
  }
  c.yield(c.numOut() == 1 ? c.out(0).element : lhs.element, dims);
  return llvm::Error::success();
}

}  // namespace tpu::hlo
