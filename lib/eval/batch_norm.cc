// Batch normalisation and its gradient, written out in elementwise ops and sums over all dimensions but the
// feature's, in f32 or f64 (narrower types are rounded at the end).
#include "native.h"
#include "values.h"

namespace tpu::eval {
namespace {

class Normaliser {
 public:
  Normaliser(const Call& call)
      : element_(call.in[0]->element),
        type_(nativeType(element_)),
        dims_(call.in[0]->dims),
        feature_(call.integer(AttrKey::feature_index)),
        epsilon_(call.module.getFloat(call.id, AttrKey::epsilon)) {
    for (int64_t d = 0; d < static_cast<int64_t>(dims_.size()); ++d)
      if (d != feature_) others_.push_back(d);
  }

  Tensor wide(const Tensor& t) const { return convertTo(t, type_); }
  Tensor back(const Tensor& t) const { return convertTo(t, element_); }

  // A value per feature spread over the whole shape.
  Tensor spread(const Tensor& t) const {
    Tensor out = makeTensor(type_, dims_);
    std::vector<int64_t> from(dims_.size(), 0);
    from[feature_] = 1;
    stridedCopy(dims_, hostBytes(type_), t->bytes.data(), from, out->bytes.data(), rowMajorStrides(dims_));
    return out;
  }

  Tensor sum(const Tensor& t) const { return foldSingle(Opcode::add, t, others_, scalarOf(type_, 0)); }
  Tensor mean(const Tensor& t) const {
    double count = 1;
    for (int64_t d : others_) count *= static_cast<double>(dims_[d]);
    const Tensor total = sum(t);
    return binaryOf(Opcode::divide, total, splatTo(scalarOf(type_, count), total->dims));
  }
  // sqrt(variance + epsilon) per feature.
  Tensor deviation(const Tensor& variance) const {
    return unaryOf(Opcode::sqrt,
                   binaryOf(Opcode::add, variance, splatTo(scalarOf(type_, epsilon_), variance->dims)));
  }
  double count() const {
    double n = 1;
    for (int64_t d : others_) n *= static_cast<double>(dims_[d]);
    return n;
  }
  Tensor constant(double value) const { return splatTo(scalarOf(type_, value), dims_); }

  // (x - mean) / deviation * scale + offset.
  Tensor normalise(const Tensor& x, const Tensor& scale, const Tensor& offset, const Tensor& mean,
                   const Tensor& variance) const {
    const Tensor centred = binaryOf(Opcode::subtract, x, spread(mean));
    const Tensor normal = binaryOf(Opcode::divide, centred, spread(deviation(variance)));
    return binaryOf(Opcode::add, binaryOf(Opcode::multiply, normal, spread(scale)), spread(offset));
  }

 private:
  ElementType element_, type_;
  Dims dims_, others_;
  int64_t feature_;
  double epsilon_;
};

Tensors training(const Call& call, const Normaliser& n) {
  const Tensor x = n.wide(call.in[0]);
  const Tensor mean = n.mean(x);
  const Tensor centred = binaryOf(Opcode::subtract, x, n.spread(mean));
  const Tensor variance = n.mean(binaryOf(Opcode::multiply, centred, centred));
  const Tensor out = n.normalise(x, n.wide(call.in[1]), n.wide(call.in[2]), mean, variance);
  return {n.back(out), n.back(mean), n.back(variance)};
}

// The specification's formulas: with i4 the sums over a feature,
// dx = scale / deviation / N * (N dy - sum(dy) - centred * sum(dy centred) / (variance + epsilon)).
Tensors gradient(const Call& call, const Normaliser& n) {
  const Tensor x = n.wide(call.in[0]), dy = n.wide(call.in[4]);
  const Tensor centred = binaryOf(Opcode::subtract, x, n.spread(n.wide(call.in[2])));
  const Tensor deviation = n.deviation(n.wide(call.in[3])), wide_deviation = n.spread(deviation);
  const Tensor product_sum = n.sum(binaryOf(Opcode::multiply, dy, centred));
  const Tensor dy_sum = n.sum(dy);
  const Tensor correction = binaryOf(
      Opcode::divide,
      binaryOf(Opcode::divide, binaryOf(Opcode::multiply, n.spread(product_sum), centred), wide_deviation),
      wide_deviation);
  Tensor inner =
      binaryOf(Opcode::subtract, binaryOf(Opcode::multiply, dy, n.constant(n.count())), n.spread(dy_sum));
  inner = binaryOf(Opcode::subtract, inner, correction);
  const Tensor factor =
      binaryOf(Opcode::divide, binaryOf(Opcode::divide, n.spread(n.wide(call.in[1])), wide_deviation),
               n.constant(n.count()));
  const Tensor scale_gradient = binaryOf(Opcode::divide, product_sum, deviation);
  return {n.back(binaryOf(Opcode::multiply, factor, inner)), n.back(scale_gradient), n.back(dy_sum)};
}

}  // namespace

Outcome batchNorm(Call& call) {
  const Normaliser n(call);
  if (call.opcode() == Opcode::batch_norm_training) return training(call, n);
  if (call.opcode() == Opcode::batch_norm_grad) return gradient(call, n);
  return Tensors{n.back(n.normalise(n.wide(call.in[0]), n.wide(call.in[1]), n.wide(call.in[2]),
                                    n.wide(call.in[3]), n.wide(call.in[4])))};
}

}  // namespace tpu::eval
