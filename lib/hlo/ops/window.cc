// Size arithmetic of windows: dilation, padding, stride.
#include "window.h"

namespace tpu::hlo {
namespace {

int64_t entry(OpCheck& c, AttrKey key, size_t i, int64_t otherwise) {
  llvm::ArrayRef<int64_t> values = c.ints(key);
  return i < values.size() ? values[i] : otherwise;
}

__int128 dilated(int64_t size, int64_t dilation) {
  return size == 0 ? 0 : static_cast<__int128>(size - 1) * dilation + 1;
}

}  // namespace

llvm::Error needWindow(OpCheck& c, const WindowKeys& keys, size_t rank, const WindowLabels& labels) {
  const std::tuple<AttrKey, Label, Label> rows[] = {
      {keys.strides, labels.strides, labels.stride},
      {keys.base_dilations, labels.base_dilations, labels.base_dilation},
      {keys.window_dilations, labels.window_dilations, labels.window_dilation}};
  for (const auto& [key, length, sign] : rows) {
    if (!c.has(key)) continue;
    if (auto e = c.needLength(key, rank, length)) return e;
    if (auto e = c.needPositive(key, sign)) return e;
  }
  if (c.has(AttrKey::padding))
    if (auto e = c.needLength(AttrKey::padding, 2 * rank, labels.padding)) return e;
  return llvm::Error::success();
}

int64_t windowPositions(OpCheck& c, const WindowKeys& keys, llvm::ArrayRef<int64_t> padding, size_t i,
                        int64_t size, int64_t window) {
  if (size == kDynamicDim || window == kDynamicDim) return kDynamicDim;
  int64_t low = 2 * i < padding.size() ? padding[2 * i] : 0;
  int64_t high = 2 * i + 1 < padding.size() ? padding[2 * i + 1] : 0;
  __int128 padded = dilated(size, entry(c, keys.base_dilations, i, 1)) + low + high;
  __int128 covered = dilated(window, entry(c, keys.window_dilations, i, 1));
  if (padded <= 0 || covered > padded) return 0;
  __int128 positions = (padded - covered) / entry(c, keys.strides, i, 1) + 1;
  return positions > INT64_MAX ? INT64_MAX : static_cast<int64_t>(positions);
}

}  // namespace tpu::hlo
