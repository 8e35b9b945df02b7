// Axes of one mesh as axes of another one over the same devices. An axis is a step through devices; where the meshes
// order their devices differently, the step is measured in positions of the other mesh, prime factor by prime factor.
#include "tpu/sharding/gspmd.h"

namespace tpu::sharding {

namespace {

std::vector<int64_t> positions(const Mesh& from, const Mesh& to) {
  std::vector<int64_t> of_device(to.numDevices()), out(from.numDevices());
  for (size_t i = 0; i < of_device.size(); ++i) of_device[to.device_ids.empty() ? i : to.device_ids[i]] = static_cast<int64_t>(i);
  for (size_t i = 0; i < out.size(); ++i) out[i] = of_device[from.device_ids.empty() ? i : from.device_ids[i]];
  return out;
}

int64_t leastFactor(int64_t n) {
  for (int64_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}

/// The distance that a step of `stride` positions, `count` of them, is everywhere; 0 where it is not the same.
int64_t stepIn(llvm::ArrayRef<int64_t> position, int64_t stride, int64_t count) {
  const int64_t step = position[stride] - position[0];
  for (int64_t i = 0; i < static_cast<int64_t>(position.size()); ++i) {
    if (i / stride % count + 1 < count && position[i + stride] - position[i] != step) return 0;
  }
  return std::max<int64_t>(step, 0);
}

}  // namespace

bool translateAxes(const Mesh& from, AxesRef axes, const Mesh& to, Axes& out) {
  out.clear();
  if (from.numDevices() != to.numDevices()) return axes.empty() || from.numDevices() == 1;
  std::vector<int64_t> position;
  if (from.device_ids != to.device_ids) position = positions(from, to);
  for (const AxisRef& a : axes) {
    Axes whole;
    int64_t at = stride(from, a), rest = a.size;
    while (rest > 1) {
      const int64_t p = position.empty() ? rest : leastFactor(rest);
      const int64_t step = position.empty() ? at : stepIn(position, at, p);
      Axes part;
      if (step == 0 || !axesOfStride(to, step, p, part)) return false;
      append(part, whole);
      whole = std::move(part);
      at *= p;
      rest /= p;
    }
    append(out, whole);
  }
  return true;
}

bool translateSharding(const Mesh& from, const hlo::Sharding& sharding, const Mesh& to, hlo::Sharding& out) {
  out = sharding;
  bool each = translateAxes(from, sharding.replicated, to, out.replicated) && translateAxes(from, sharding.unreduced, to, out.unreduced);
  for (size_t d = 0; d < out.dims.size(); ++d) each = each && translateAxes(from, sharding.dims[d].axes, to, out.dims[d].axes);
  if (each) return true;
  if (from.numDevices() != to.numDevices() || !sharding.replicated.empty() || !sharding.unreduced.empty()) return false;
  // Taken alone no axis is one of the other mesh, but the order of devices that hold the same part means nothing.
  Gspmd tiles;
  tiles.kind = GspmdKind::kTiled;
  for (const hlo::DimSharding& d : sharding.dims) tiles.dims.push_back(Axes(d.axes.begin(), d.axes.end()));
  auto read = parseGspmd(to, printGspmd(from, tiles), "");
  if (!read) {
    llvm::consumeError(read.takeError());
    return false;
  }
  if (read->kind != GspmdKind::kTiled) return false;
  for (size_t d = 0; d < out.dims.size(); ++d) out.dims[d].axes = read->dims[d];
  return true;
}

}  // namespace tpu::sharding
