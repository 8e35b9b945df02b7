// Comparison element by element in f64; steps between values through their order as integers.
#include "tpu/eval/compare.h"

#include <cmath>
#include <cstdlib>

#include "values.h"

namespace tpu::eval {
namespace {

// Position of a float among the values of its type: consecutive values are consecutive integers.
int64_t rankOf(const HostTensor& t, int64_t i) {
  const int64_t code = integerAt(t, i);
  const int bits = elementBits(t.element);
  const int64_t magnitude = bits == 64 ? code & INT64_MAX : code & ((int64_t{1} << (bits - 1)) - 1);
  const bool negative = bits == 64 ? code < 0 : code >> (bits - 1) & 1;
  return negative ? -magnitude : magnitude;
}

// One component of every element as f64, its rank in its own type beside it.
struct Component {
  Tensor own_type, wide;
};

llvm::SmallVector<Component, 2> components(const HostTensor& t) {
  llvm::SmallVector<Component, 2> out;
  if (!isComplex(t.element)) {
    Tensor whole = std::make_shared<HostTensor>(t);
    out.push_back({whole, convertTo(whole, ElementType::kF64)});
    return out;
  }
  const ElementType half = t.element == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
  for (int part = 0; part < 2; ++part) {
    Tensor own_type = makeTensor(half, t.dims);
    stridedCopy({t.numElements()}, hostBytes(half), t.bytes.data() + part * hostBytes(half), {2},
                own_type->bytes.data(), {1});
    out.push_back({own_type, convertTo(own_type, ElementType::kF64)});
  }
  return out;
}

bool agree(const Component& got, const Component& want, int64_t i, const Tolerance& t, double& difference) {
  const double g = got.wide->data<double>()[i], w = want.wide->data<double>()[i];
  difference = 0;
  if (g == w) return true;
  if (g != g || w != w) return t.nan_equal && g != g && w != w;
  difference = std::fabs(g - w);
  if (difference <= t.absolute + t.relative * std::fabs(w) && std::isfinite(w)) return true;
  if (t.ulps == 0 || !isFloat(got.own_type->element)) return false;
  return std::llabs(rankOf(*got.own_type, i) - rankOf(*want.own_type, i)) <= t.ulps;
}

std::optional<Difference> compareExactly(const HostTensor& got, const HostTensor& want) {
  Difference d;
  for (int64_t i = 0; i < got.numElements(); ++i) {
    const int64_t g = integerAt(got, i), w = integerAt(want, i);
    if (g == w) continue;
    if (d.differing++ == 0) d.first = i;
    d.largest = std::fmax(d.largest, std::fabs(static_cast<double>(g) - static_cast<double>(w)));
  }
  return d.differing ? std::optional<Difference>(d) : std::nullopt;
}

}  // namespace

Tolerance defaultTolerance(ElementType element, llvm::StringRef precision) {
  if (isComplex(element))
    return defaultTolerance(element == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64, precision);
  if (!isFloat(element)) return {};
  const auto both = [](double t) { return Tolerance{t, t, 0, false}; };
  switch (element) {
    case ElementType::kF64:
      return both(1e-10);
    case ElementType::kF32:
      return both(precision == "default" ? 2e-2 : precision == "high" ? 1e-4 : 1e-5);
    case ElementType::kF16:
      return both(2e-3);
    case ElementType::kBF16:
      return both(2e-2);
    default:
      return both(0.1);
  }
}

std::optional<Difference> compareTensors(const HostTensor& got, const HostTensor& want,
                                         const Tolerance& tolerance) {
  const bool exact =
      !isFloat(got.element) && !isComplex(got.element) && tolerance.relative == 0 && tolerance.absolute == 0;
  if (exact) return compareExactly(got, want);
  const auto g = components(got), w = components(want);
  Difference d;
  for (int64_t i = 0; i < got.numElements(); ++i) {
    bool same = true;
    for (size_t c = 0; c < g.size(); ++c) {
      double difference;
      same = agree(g[c], w[c], i, tolerance, difference) && same;
      if (difference > d.largest) d.largest = difference;
    }
    if (!same && d.differing++ == 0) d.first = i;
  }
  return d.differing ? std::optional<Difference>(d) : std::nullopt;
}

std::optional<uint64_t> ulpsApart(const HostTensor& a, const HostTensor& b, int64_t element) {
  if (!isFloat(a.element) || a.element != b.element) return std::nullopt;
  if (std::isnan(numberAt(a, element)) || std::isnan(numberAt(b, element))) return std::nullopt;
  const int64_t x = rankOf(a, element), y = rankOf(b, element);
  return x > y ? static_cast<uint64_t>(x) - static_cast<uint64_t>(y) : static_cast<uint64_t>(y) - static_cast<uint64_t>(x);
}

std::string indexText(llvm::ArrayRef<int64_t> dims, int64_t index) {
  std::string text;
  for (size_t d = dims.size(); d-- > 0; index /= dims[d])
    text = std::to_string(index % dims[d]) + (text.empty() ? "" : "," + text);
  return "[" + text + "]";
}

}  // namespace tpu::eval
