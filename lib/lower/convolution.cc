// Convolutions that are matrix products: those without a window, as XLA prints every product for TPUs, those whose window is
// one element, and spatial dimensions that XLA uses as batch dimensions.
#include "decompose.h"

namespace tpu::lower {
namespace {

using hlo::AttrKey;
using hlo::OpId;
using hlo::ValueId;

class Product {
 public:
  Product(hlo::Module& m, OpId id) : m_(m), id_(id), in_(m.typeOf(m.op(id).operands[0])), kernel_(m.typeOf(m.op(id).operands[1])) {}

  ValueId make(hlo::Builder& b) {
    if (m_.getInt(id_, AttrKey::feature_group_count, 1) != 1 || m_.getInt(id_, AttrKey::batch_group_count, 1) != 1) return ValueId();
    const auto in = m_.getInts(id_, AttrKey::input_spatial_dimensions), kernel = m_.getInts(id_, AttrKey::kernel_spatial_dimensions);
    llvm::SmallVector<int64_t, 4> lhs_batch, rhs_batch;
    llvm::SmallVector<bool, 4> batch;
    for (size_t s = 0; s < in.size(); ++s) {
      batch.push_back(pairsUp(s, in_.dims[in[s]], kernel_.dims[kernel[s]]));
      if (!batch[s] && !stays(s, kernel_.dims[kernel[s]])) return ValueId();
    }
    // The kernel without the window's dimensions: those of the batch, what is contracted, what is made.
    llvm::SmallVector<int64_t, 6> order;
    hlo::Dims sizes;
    auto take = [&](int64_t dim) {
      order.push_back(dim);
      sizes.push_back(kernel_.dims[dim]);
    };
    for (size_t s = 0; s < in.size(); ++s) {
      if (!batch[s]) continue;
      lhs_batch.push_back(in[s]);
      rhs_batch.push_back(static_cast<int64_t>(order.size()));
      take(kernel[s]);
    }
    const int64_t lhs_contract = m_.getInt(id_, AttrKey::input_feature_dimension), rhs_contract = static_cast<int64_t>(order.size());
    take(m_.getInt(id_, AttrKey::kernel_input_feature_dimension));
    take(m_.getInt(id_, AttrKey::kernel_output_feature_dimension));
    for (size_t s = 0; s < in.size(); ++s) {
      if (!batch[s]) order.push_back(kernel[s]);
    }
    const hlo::Type out = m_.typeOf(m_.op(id_).results[0]);
    const ValueId rhs = b.reshape(b.transpose(m_.op(id_).operands[1], order), sizes);
    const ValueId dot = b.dotGeneral(m_.op(id_).operands[0], rhs, {lhs_batch, rhs_batch, lhs_contract, rhs_contract}, out.element);
    if (const hlo::Attr* precision = m_.findAttr(id_, AttrKey::precision_config))
      m_.setStrings(m_.value(dot).def, AttrKey::precision_config, std::vector<std::string>(precision->strs));
    return b.transpose(dot, placesOf(in, lhs_batch, lhs_contract, out.rank()));
  }

 private:
  int64_t each(AttrKey key, size_t i, int64_t otherwise) const {
    const auto list = m_.getInts(id_, key);
    return i < list.size() ? list[i] : otherwise;
  }
  bool flat(size_t s) const {
    return each(AttrKey::padding, 2 * s, 0) == 0 && each(AttrKey::padding, 2 * s + 1, 0) == 0 &&
           each(AttrKey::rhs_dilation, s, 1) == 1;
  }
  // A window of one element at every place.
  bool stays(size_t s, int64_t window) const {
    return window == 1 && flat(s) && each(AttrKey::window_strides, s, 1) == 1 && each(AttrKey::lhs_dilation, s, 1) == 1;
  }
  // A window of n over n elements that stand n apart, moved by n - 1: at step i it meets element i with its own i alone.
  bool pairsUp(size_t s, int64_t size, int64_t window) const {
    return size == window && size > 1 && flat(s) && each(AttrKey::window_strides, s, 1) == size - 1 &&
           each(AttrKey::lhs_dilation, s, 1) == size && each(AttrKey::window_reversal, s, 0) == 0;
  }

  // Where each dimension of the result stands among those of the product: batch, what is left of the input, made features.
  llvm::SmallVector<int64_t, 6> placesOf(llvm::ArrayRef<int64_t> in, llvm::ArrayRef<int64_t> batch, int64_t contracted, int64_t rank) const {
    llvm::SmallVector<int64_t, 6> of_input(static_cast<size_t>(rank), -1), places(static_cast<size_t>(rank));
    int64_t next = 0;
    for (int64_t d : batch) of_input[d] = next++;
    for (int64_t d = 0; d < rank; ++d) {
      if (of_input[d] < 0 && d != contracted) of_input[d] = next++;
    }
    places[m_.getInt(id_, AttrKey::output_batch_dimension)] = of_input[m_.getInt(id_, AttrKey::input_batch_dimension)];
    places[m_.getInt(id_, AttrKey::output_feature_dimension)] = next;
    const auto out = m_.getInts(id_, AttrKey::output_spatial_dimensions);
    for (size_t s = 0; s < in.size(); ++s) places[out[s]] = of_input[in[s]];
    return places;
  }

  hlo::Module& m_;
  OpId id_;
  const hlo::Type in_, kernel_;
};

}  // namespace

ValueId productOfConvolution(hlo::Builder& b, hlo::Module& m, OpId id) { return Product(m, id).make(b); }

}  // namespace tpu::lower
