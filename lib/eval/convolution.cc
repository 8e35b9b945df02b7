// Convolution as matrix products: the patches that some output pixels see become rows, the kernel a matrix of
// [spatial..., input features] x [output features].
#include <algorithm>

#include "gemm.h"
#include "native.h"
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
void writePatch(const HostTensor& lhs, const Shape& s, int64_t image, const Dims& pixel,
                int64_t first_feature, int64_t features, uint8_t* row) {
  const int64_t width = hostBytes(lhs.element), bytes = features * width;
  Dims at(s.window.size(), 0);
  do {
    int64_t flat = image;
    bool inside = true;
    for (size_t d = 0; d < at.size(); ++d) {
      const int64_t tap = s.reversed[d] ? s.window[d] - 1 - at[d] : at[d];
      const int64_t x = pixel[d] * s.stride[d] + tap * s.rhs_dilation[d] - s.low[d];
      inside = inside && x >= 0 && x % s.lhs_dilation[d] == 0 && x / s.lhs_dilation[d] < s.in[d];
      flat = flat * s.in[d] + x / s.lhs_dilation[d];
    }
    if (inside) {
      std::copy_n(lhs.bytes.data() + (flat * s.in_features + first_feature) * width, bytes, row);
    } else {
      std::fill_n(row, bytes, 0);
    }
    row += bytes;
  } while (next(at, s.window));
}

// The columns of one group as a dense matrix.
Tensor kernelColumns(const HostTensor& rhs, int64_t rows, int64_t first, int64_t count) {
  Tensor out = makeTensor(rhs.element, {rows, count});
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
  Tensor out = makeTensor(type, canonical);
  const int64_t block = std::clamp<int64_t>((1 << 20) / std::max<int64_t>(k, 1), 16, 4096);
  std::vector<uint8_t> patches(block * k * width), sums(block * group_out * width);
  for (int64_t g = 0; g < groups; ++g) {
    const Tensor weights = kernelColumns(*rhs, k, g * group_out, group_out);
    const int64_t first_feature = s.feature_groups > 1 ? g * group_in : 0;
    const int64_t first_image = s.batch_groups > 1 ? g * images : 0;
    Dims pixel(s.out.size(), 0);
    for (int64_t p = 0; p < images * pixels;) {
      const int64_t first = p;
      for (; p < images * pixels && p - first < block; ++p) {
        writePatch(*lhs, s, first_image + p / pixels, pixel, first_feature, group_in,
                   patches.data() + (p - first) * k * width);
        next(pixel, s.out);
      }
      std::fill(sums.begin(), sums.end(), 0);
      gemm(type, patches.data(), weights->bytes.data(), sums.data(), p - first, group_out, k, !call.stepwise);
      stridedCopy({p - first, group_out}, static_cast<int>(width), sums.data(), {group_out, 1},
                  out->bytes.data() + (first * s.out_features + g * group_out) * width, {s.out_features, 1});
    }
  }
  // To the layout that the op names.
  const Dims from_canonical = order(out_batch, out_spatial, out_feature);
  Dims back(from_canonical.size());
  for (size_t d = 0; d < back.size(); ++d) back[from_canonical[d]] = static_cast<int64_t>(d);
  return Tensors{convertTo(transposed(out, back), result)};
}

}  // namespace tpu::eval
