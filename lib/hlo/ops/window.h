// The size arithmetic that convolution, reduce_window and select_and_scatter share.
#pragma once
#include "check.h"

namespace tpu::hlo {

struct WindowKeys {
  AttrKey strides, base_dilations, window_dilations;
};
inline constexpr WindowKeys kReduceWindowKeys = {AttrKey::window_strides, AttrKey::base_dilations,
                                                 AttrKey::window_dilations};
inline constexpr WindowKeys kConvolutionKeys = {AttrKey::window_strides, AttrKey::lhs_dilation,
                                                AttrKey::rhs_dilation};

/// The constraints that window attributes stand under: length and sign of strides, of the two dilations, and
/// the shape of the padding.
struct WindowLabels {
  Label strides, stride, base_dilations, base_dilation, window_dilations, window_dilation, padding;
};

/// Checks the lengths and signs of window attributes for `rank` dimensions; each may be absent.
llvm::Error needWindow(OpCheck& c, const WindowKeys& keys, size_t rank, const WindowLabels& labels);
/// Positions of a window of `window` elements along dimension i of `size` elements, padded by pairs of
/// `padding`; kDynamicDim where unknown.
int64_t windowPositions(OpCheck& c, const WindowKeys& keys, llvm::ArrayRef<int64_t> padding, size_t i,
                        int64_t size, int64_t window);

}  // namespace tpu::hlo
