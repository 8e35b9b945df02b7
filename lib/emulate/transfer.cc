// Geometry of strided transfers.
#include "transfer.h"

#include <algorithm>

namespace tpu::emulate {

int64_t Pattern::low() const {
  int64_t at = base;
  for (int i = 0; i < 3; ++i) at += std::min<int64_t>(0, (n[i] - 1) * stride[i]);
  return at;
}

int64_t Pattern::high() const {
  int64_t at = base + run;
  for (int i = 0; i < 3; ++i) at += std::max<int64_t>(0, (n[i] - 1) * stride[i]);
  return at;
}

void Pattern::simplify() {
  for (int i = 0; i < 3; ++i) {
    if (n[i] != 1) continue;
    // A count of one is moved outwards.
    for (int j = i + 1; j < 3; ++j) {
      if (n[j] == 1) continue;
      std::swap(n[i], n[j]);
      std::swap(stride[i], stride[j]);
      break;
    }
  }
  while (n[0] > 1 && stride[0] == run) {
    run *= n[0];
    n = {n[1], n[2], 1};
    stride = {stride[1], stride[2], 0};
  }
}

namespace {

// Whether [begin, end) meets base + sums of the outer dimensions `dim`..0 of the pattern.
bool meets(const Pattern& p, int dim, int64_t base, int64_t begin, int64_t end) {
  if (dim < 0) return base < end && begin < base + p.run;
  if (p.n[dim] == 1 || p.stride[dim] == 0) return meets(p, dim - 1, base, begin, end);
  // Extent of what lies inside this dimension.
  int64_t low = 0, high = p.run;
  for (int i = 0; i < dim; ++i) {
    low += std::min<int64_t>(0, (p.n[i] - 1) * p.stride[i]);
    high += std::max<int64_t>(0, (p.n[i] - 1) * p.stride[i]);
  }
  // base + k stride + high > begin and base + k stride + low < end
  const int64_t s = p.stride[dim] > 0 ? p.stride[dim] : -p.stride[dim];
  const int64_t first_base = p.stride[dim] > 0 ? base : base + (p.n[dim] - 1) * p.stride[dim];
  const auto floorDiv = [](int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); };
  const int64_t from = std::max<int64_t>(0, floorDiv(begin - high - first_base, s) + 1);
  const int64_t to = std::min<int64_t>(p.n[dim] - 1, floorDiv(end - 1 - low - first_base, s));
  for (int64_t k = from; k <= to; ++k)
    if (meets(p, dim - 1, first_base + k * s, begin, end)) return true;
  return false;
}

}  // namespace

bool Pattern::touches(int64_t begin, int64_t end) const {
  if (end <= low() || high() <= begin) return false;
  return meets(*this, 2, base, begin, end);
}

bool Pattern::touches(const Pattern& other) const {
  if (space != other.space || other.high() <= low() || high() <= other.low()) return false;
  const Pattern& few = runs() <= other.runs() ? *this : other;
  const Pattern& many = &few == this ? other : *this;
  for (int64_t i = 0, total = few.runs(); i < total; ++i) {
    const int64_t start = few.runStart(i);
    if (many.touches(start, start + few.run)) return true;
  }
  return false;
}

int64_t granuleBytes(int64_t start, int64_t length, int granule, bool write) {
  const int64_t end = start + length;
  // Granules are powers of two on every chip known, which saves most of the time this takes.
  const bool power = (granule & (granule - 1)) == 0;
  const auto below = [&](int64_t x) { return power ? x & (granule - 1) : x % granule; };
  const int64_t head = below(start), tail = below(end);
  const int64_t first = start - head, covered = end - first + (tail ? granule - tail : 0);
  if (!write) return covered;
  const int parts = covered == granule ? (head || tail) : (head != 0) + (tail != 0);
  return covered + int64_t{parts} * granule;
}

namespace {

// Goes along the bytes of a pattern.
class Walk {
 public:
  Walk(const Pattern& p, int64_t begin) : p_(p), at_(begin % p.run) {
    int64_t run = begin / p.run;
    for (int d = 0; d < 3; ++d) {
      i_[d] = run % p.n[d];
      run /= p.n[d];
    }
    place();
  }
  int64_t address() const { return start_ + at_; }
  int64_t left() const { return p_.run - at_; }  // of the run
  void advance(int64_t bytes) {
    at_ += bytes;
    if (at_ < p_.run) return;
    at_ = 0;
    start_ += p_.stride[0];
    if (++i_[0] < p_.n[0]) return;
    i_[0] = 0;
    if (++i_[1] == p_.n[1]) {
      i_[1] = 0;
      ++i_[2];
    }
    place();
  }

 private:
  void place() { start_ = p_.base + i_[0] * p_.stride[0] + i_[1] * p_.stride[1] + i_[2] * p_.stride[2]; }
  const Pattern& p_;
  std::array<int64_t, 3> i_{};
  int64_t start_ = 0, at_ = 0;
};

}  // namespace

void forEachPiece(const Pattern& from, const Pattern& to, int64_t begin, int64_t end,
                  llvm::function_ref<void(int64_t, int64_t, int64_t)> f) {
  if (begin >= end) return;
  Walk a(from, begin), b(to, begin);
  while (begin < end) {
    const int64_t n = std::min({end - begin, a.left(), b.left()});
    f(a.address(), b.address(), n);
    a.advance(n);
    b.advance(n);
    begin += n;
  }
}

}  // namespace tpu::emulate
