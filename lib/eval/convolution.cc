// Convolution as matrix products: the patches that some output pixels see become rows, the kernel a matrix of
// [spatial..., input features] x [output features].
#include <algorithm>
#include <cstring>

#include "gemm.h"
#include "native.h"
#include "tpu/support/parallel.h"
#include "values.h"

namespace tpu::eval {
namespace {

// Everything in the order [batch, spatial..., feature] and [spatial..., input feature, output feature].
struct Shape {
  int64_t batch, in_features, out_features;  // whole
  int64_t feature_groups, batch_groups;
  Dims in, window, out;  // spatial sizes
  Dims stride, low, high, lhs_dilation, rhs_dilation;
  llvm::SmallVector<bool, 4> reversed;
};

Dims orDefault(llvm::ArrayRef<int64_t> values, size_t rank, int64_t otherwise) {
  return values.empty() ? Dims(rank, otherwise) : Dims(values.begin(), values.end());
}

Dims order(int64_t first, llvm::ArrayRef<int64_t> middle, int64_t last) {
  Dims out{first};
  out.append(middle.begin(), middle.end());
  out.push_back(last);
  return out;
}

Shape shapeOf(const Call& call, const HostTensor& lhs, const HostTensor& rhs) {
  Shape s;
  const size_t spatial = lhs.dims.size() - 2;
  s.batch = lhs.dims.front();
  s.in_features = lhs.dims.back();
  s.out_features = rhs.dims.back();
  s.feature_groups = call.integer(AttrKey::feature_group_count, 1);
  s.batch_groups = call.integer(AttrKey::batch_group_count, 1);
  s.stride = orDefault(call.ints(AttrKey::window_strides), spatial, 1);
  s.lhs_dilation = orDefault(call.ints(AttrKey::lhs_dilation), spatial, 1);
  s.rhs_dilation = orDefault(call.ints(AttrKey::rhs_dilation), spatial, 1);
  const Dims given = call.opcode() == Opcode::dynamic_conv ? integersOf(*call.in[2]) : Dims();
  const llvm::ArrayRef<int64_t> padding =
      call.opcode() == Opcode::dynamic_conv ? llvm::ArrayRef<int64_t>(given) : call.ints(AttrKey::padding);
  const llvm::ArrayRef<int64_t> reversal = call.ints(AttrKey::window_reversal);
  for (size_t d = 0; d < spatial; ++d) {
    s.in.push_back(lhs.dims[d + 1]);
    s.window.push_back(rhs.dims[d]);
    s.low.push_back(padding.empty() ? 0 : padding[2 * d]);
    s.high.push_back(padding.empty() ? 0 : padding[2 * d + 1]);
    s.reversed.push_back(!reversal.empty() && reversal[d]);
    const int64_t dilated = s.in[d] == 0 ? 0 : (s.in[d] - 1) * s.lhs_dilation[d] + 1;
    const int64_t padded = dilated + s.low[d] + s.high[d];
    const int64_t span = s.window[d] == 0 ? 0 : (s.window[d] - 1) * s.rhs_dilation[d] + 1;
    s.out.push_back(padded < span ? 0 : (padded - span) / s.stride[d] + 1);
  }
  return s;
}

bool next(Dims& index, llvm::ArrayRef<int64_t> dims) {
  for (size_t d = dims.size(); d-- > 0;) {
    if (++index[d] < dims[d]) return true;
    index[d] = 0;
  }
  return false;
}

// The patch of one output pixel: for every window position, `features` elements of the input, or zeros in the
// padding.
class PatchWriter {
 public:
  PatchWriter(const HostTensor& lhs, const Shape& s, int64_t first_feature, int64_t features)
      : lhs_(lhs), s_(s), first_(first_feature), features_(features), width_(hostBytes(lhs.element)) {
    // Neighbours in the window's last dim are neighbours in memory.
    const size_t rank = s.window.size();
    runs_ = rank > 0 && features == s.in_features && !s.reversed[rank - 1] && s.lhs_dilation[rank - 1] == 1 &&
            s.rhs_dilation[rank - 1] == 1;
  }

  void write(int64_t image, const Dims& pixel, uint8_t* row) const {
    const size_t loops = s_.window.size() - (runs_ ? 1 : 0);
    Dims at(loops, 0);
    const llvm::ArrayRef<int64_t> trips = llvm::ArrayRef<int64_t>(s_.window).take_front(loops);
    do {
      int64_t flat = image;
      bool inside = true;
      for (size_t d = 0; d < loops; ++d) {
        const int64_t tap = s_.reversed[d] ? s_.window[d] - 1 - at[d] : at[d];
        const int64_t x = pixel[d] * s_.stride[d] + tap * s_.rhs_dilation[d] - s_.low[d];
        const int64_t in = s_.lhs_dilation[d] == 1 ? x : x / s_.lhs_dilation[d];
        inside = inside && x >= 0 && in * s_.lhs_dilation[d] == x && in < s_.in[d];
        flat = flat * s_.in[d] + in;
      }
      row = runs_ ? writeRun(flat, inside, pixel[loops], row) : writeOne(flat, inside, row);
    } while (next(at, trips));
  }

 private:
  uint8_t* writeOne(int64_t flat, bool inside, uint8_t* row) const {
    const int64_t bytes = features_ * width_;
    if (inside) {
      std::memcpy(row, lhs_.bytes.data() + (flat * s_.in_features + first_) * width_, bytes);
    } else {
      std::memset(row, 0, bytes);
    }
    return row + bytes;
  }

  // All positions of the last dim: zeros, one run of the input, zeros.
  uint8_t* writeRun(int64_t flat, bool inside, int64_t pixel, uint8_t* row) const {
    const size_t d = s_.window.size() - 1;
    const int64_t bytes = features_ * width_, window = s_.window[d];
    const int64_t x = pixel * s_.stride[d] - s_.low[d];
    const int64_t begin = std::clamp<int64_t>(-x, 0, window);
    const int64_t end = inside ? std::clamp<int64_t>(s_.in[d] - x, begin, window) : begin;
    std::memset(row, 0, begin * bytes);
    if (end > begin)
      std::memcpy(row + begin * bytes, lhs_.bytes.data() + (flat * s_.in[d] + x + begin) * bytes,
                  (end - begin) * bytes);
    std::memset(row + end * bytes, 0, (window - end) * bytes);
    return row + window * bytes;
  }

  const HostTensor& lhs_;
  const Shape& s_;
  const int64_t first_, features_, width_;
  bool runs_;
};

// Patches are the input's own rows: a window of one element that visits every pixel.
bool isPointwise(const Shape& s) {
  for (size_t d = 0; d < s.window.size(); ++d)
    if (s.window[d] != 1 || s.stride[d] != 1 || s.low[d] != 0 || s.high[d] != 0 || s.lhs_dilation[d] != 1)
      return false;
  return s.feature_groups == 1 && s.batch_groups == 1;
}

Dims unflatten(int64_t flat, llvm::ArrayRef<int64_t> dims) {
  Dims index(dims.size(), 0);
  for (size_t d = dims.size(); d-- > 0; flat /= dims[d]) index[d] = flat % dims[d];
  return index;
}

// The columns of one group as a dense matrix.
Tensor kernelColumns(const HostTensor& rhs, int64_t rows, int64_t first, int64_t count) {
  Tensor out = rawTensor(rhs.element, {rows, count});
  const int width = hostBytes(rhs.element);
  stridedCopy({rows, count}, width, rhs.bytes.data() + first * width, {rhs.dims.back(), 1}, out->bytes.data(),
              {count, 1});
  return out;
}

}  // namespace

Outcome convolution(Call& call) {
  const ElementType result = call.resultElement(), type = contractionType(result);
  const int64_t out_batch = call.integer(AttrKey::output_batch_dimension);
  const int64_t out_feature = call.integer(AttrKey::output_feature_dimension);
  const llvm::ArrayRef<int64_t> out_spatial = call.ints(AttrKey::output_spatial_dimensions);
  const Tensor lhs = convertTo(transposed(call.in[0], order(call.integer(AttrKey::input_batch_dimension),
                                                            call.ints(AttrKey::input_spatial_dimensions),
                                                            call.integer(AttrKey::input_feature_dimension))),
                               type);
  Dims kernel(call.ints(AttrKey::kernel_spatial_dimensions).begin(),
              call.ints(AttrKey::kernel_spatial_dimensions).end());
  kernel.push_back(call.integer(AttrKey::kernel_input_feature_dimension));
  kernel.push_back(call.integer(AttrKey::kernel_output_feature_dimension));
  const Tensor rhs = convertTo(transposed(call.in[1], kernel), type);
  const Shape s = shapeOf(call, *lhs, *rhs);

  const int64_t groups = std::max(s.feature_groups, s.batch_groups);
  const int64_t group_in = s.in_features / s.feature_groups, group_out = s.out_features / groups;
  const int64_t images = s.batch / s.batch_groups;
  int64_t pixels = 1, taps = 1;
  for (int64_t d : s.out) pixels *= d;
  for (int64_t d : s.window) taps *= d;
  const int64_t k = taps * group_in, width = hostBytes(type);

  Dims canonical{images};
  canonical.append(s.out.begin(), s.out.end());
  canonical.push_back(s.out_features);
  Tensor out = rawTensor(type, canonical);
  // Enough blocks of pixels for all threads; the patches of a block stay in the second-level cache.
  const int64_t rows = images * pixels;
  const int64_t share = (rows + threads() - 1) / threads();
  const int64_t block =
      std::clamp<int64_t>(std::min<int64_t>((1 << 18) / std::max<int64_t>(k, 1), share), 16, 4096);
  const bool whole = groups == 1;  // products go where they belong
  if (whole) std::memset(out->bytes.data(), 0, out->bytes.size());
  for (int64_t g = 0; g < groups; ++g) {
    const Tensor weights = whole ? rhs : kernelColumns(*rhs, k, g * group_out, group_out);
    const GemmRhs right(type, weights->bytes.data(), group_out, k, rows, !call.stepwise);
    if (isPointwise(s)) {
      right.multiply(lhs->bytes.data(), out->bytes.data(), rows);
      continue;
    }
    const PatchWriter writer(*lhs, s, s.feature_groups > 1 ? g * group_in : 0, group_in);
    const int64_t first_image = s.batch_groups > 1 ? g * images : 0;
    const auto work = [&](size_t task) {
      const int64_t first = static_cast<int64_t>(task) * block, count = std::min(block, rows - first);
      HostBuffer patches = HostBuffer::uninitialized(count * k * width);
      Dims pixel = unflatten(first % pixels, s.out);
      for (int64_t p = 0; p < count; ++p) {
        writer.write(first_image + (first + p) / pixels, pixel, patches.data() + p * k * width);
        next(pixel, s.out);
      }
      if (whole)
        return right.multiply(patches.data(), out->bytes.data() + first * s.out_features * width, count);
      HostBuffer sums(count * group_out * width);
      right.multiply(patches.data(), sums.data(), count);
      stridedCopy({count, group_out}, static_cast<int>(width), sums.data(), {group_out, 1},
                  out->bytes.data() + (first * s.out_features + g * group_out) * width, {s.out_features, 1});
    };
    const int64_t tasks = (rows + block - 1) / block;
    // Few pixels: the product is shared among the threads instead.
    if (tasks < threads() || rows * group_out * k < 1 << 16) {
      for (int64_t t = 0; t < tasks; ++t) work(t);
    } else {
      parallelFor(tasks, work);
    }
  }
  // To the layout that the op names.
  const Dims from_canonical = order(out_batch, out_spatial, out_feature);
  Dims back(from_canonical.size());
  for (size_t d = 0; d < back.size(); ++d) back[from_canonical[d]] = static_cast<int64_t>(d);
  return Tensors{convertTo(transposed(out, back), result)};
}

}  // namespace tpu::eval
