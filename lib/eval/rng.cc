// rng_bit_generator: Threefry-2x32 (20 rounds) and Philox-4x32 (10 rounds), Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3" (2011). The state is u64: the key, then the counter (one word for Threefry,
// two for Philox). How counters map to elements follows XLA, so that a program draws the same bits as on its
// own platform; DEFAULT means Threefry, or Philox for a state of three words.
#include <array>
#include <cmath>
#include <cstring>

#include "tpu/eval/math.h"
#include "tpu/hlo/literal.h"
#include "values.h"

namespace tpu::eval {
namespace {

using Words2 = std::array<uint32_t, 2>;
using Words4 = std::array<uint32_t, 4>;

uint32_t rotate(uint32_t x, int by) { return x << by | x >> (32 - by); }

Words2 halves(uint64_t x) { return {static_cast<uint32_t>(x), static_cast<uint32_t>(x >> 32)}; }

Words2 threefry(Words2 x, Words2 key) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t ks[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDAu};
  x = {x[0] + ks[0], x[1] + ks[1]};
  for (uint32_t i = 0; i < 5; ++i) {
    for (int by : kRotations[i % 2]) {
      x[0] += x[1];
      x[1] = rotate(x[1], by) ^ x[0];
    }
    x[0] += ks[(i + 1) % 3];
    x[1] += ks[(i + 2) % 3] + i + 1;
  }
  return x;
}

Words4 philox(Words4 x, Words2 key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * x[0], p1 = uint64_t{0xCD9E8D57} * x[2];
    x = {static_cast<uint32_t>(p1 >> 32) ^ x[1] ^ key[0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ x[3] ^ key[1], static_cast<uint32_t>(p0)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return x;
}

// The dimension that Threefry's two words alternate along: the first even one, else the largest.
size_t pairedDim(llvm::ArrayRef<int64_t> dims) {
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d] % 2 == 0) return d;
  size_t best = 0;
  for (size_t d = 1; d < dims.size(); ++d)
    if (dims[d] > dims[best]) best = d;
  return best;
}

// 32-bit draws; returns how many counters were used.
uint64_t threefry32(Words2 key, uint64_t counter, llvm::ArrayRef<int64_t> dims, uint32_t* out) {
  if (dims.empty()) {
    *out = threefry(halves(counter), key)[0];
    return 1;
  }
  const size_t split = pairedDim(dims);
  int64_t before = 1, after = 1;
  for (size_t d = 0; d < dims.size(); ++d) (d < split ? before : after) *= d == split ? 1 : dims[d];
  const int64_t n = dims[split], pairs = (n + 1) / 2;
  for (int64_t b = 0; b < before; ++b)
    for (int64_t p = 0; p < pairs; ++p)
      for (int64_t a = 0; a < after; ++a) {
        const Words2 w = threefry(halves(counter + static_cast<uint64_t>((b * pairs + p) * after + a)), key);
        out[(b * n + 2 * p) * after + a] = w[0];
        if (2 * p + 1 < n) out[(b * n + 2 * p + 1) * after + a] = w[1];
      }
  return static_cast<uint64_t>(before * pairs * after);
}

// n 32-bit words; the 128-bit counter is advanced.
void philoxWords(Words2 key, std::array<uint64_t, 2>& counter, int64_t n, uint32_t* out) {
  for (int64_t i = 0; i < n; i += 4) {
    const Words2 low = halves(counter[0]), high = halves(counter[1]);
    const Words4 w = philox({low[0], low[1], high[0], high[1]}, key);
    for (int64_t j = 0; j < 4 && i + j < n; ++j) out[i + j] = w[j];
    if (++counter[0] == 0) ++counter[1];
  }
}

}  // namespace

Outcome randomBits(Call& call) {
  const HostTensor& state = *call.in[0];
  const llvm::StringRef algorithm = call.module.getString(call.id, AttrKey::rng_algorithm);
  const int64_t words = state.numElements() * hostBytes(state.element) / 8;
  if (words < 2 || words > 3) return unsupported(call, "with a state of this size");
  uint64_t in[3] = {};
  std::memcpy(in, state.bytes.data(), words * 8);
  const bool use_philox = algorithm == "PHILOX" || (algorithm != "THREE_FRY" && words == 3);
  const ElementType element = call.resultElement(1);
  const Dims dims = call.resultType(1).dims;
  const int width = hostBytes(element);
  if (elementBits(element) < 8 || width > 8)
    return unsupported(call, llvm::Twine("on ") + elementTypeName(element));
  Tensor out = makeTensor(element, dims);
  const int64_t n = out->numElements(), drawn = width == 8 ? 2 * n : n;
  std::vector<uint32_t> bits(drawn);
  const Words2 key = halves(in[0]);
  if (use_philox) {
    std::array<uint64_t, 2> counter{in[1], in[2]};
    philoxWords(key, counter, drawn, bits.data());
    in[1] = counter[0];
    in[2] = counter[1];
  } else if (width == 8) {
    for (int64_t i = 0; i < n; ++i) {
      const Words2 w = threefry(halves(in[1] + static_cast<uint64_t>(i)), key);
      bits[2 * i] = w[0];
      bits[2 * i + 1] = w[1];
    }
    in[1] += static_cast<uint64_t>(n);
  } else {
    in[1] += threefry32(key, in[1], dims, bits.data());
  }
  if (width >= 4) {
    std::memcpy(out->bytes.data(), bits.data(), out->bytes.size());
  } else {
    for (int64_t i = 0; i < n; ++i) std::memcpy(out->bytes.data() + i * width, &bits[i], width);
  }
  Tensor next = makeTensor(state.element, state.dims);
  std::memcpy(next->bytes.data(), in, words * 8);
  return Tensors{next, out};
}

// stablehlo.rng has no seed of its own: Philox with the op's position in the program as key, one counter per
// element. UNIFORM is a + (b - a) u with u in [0, 1) of 32 bits, for integers a + bits mod (b - a); NORMAL is
// Box and Muller's.
Outcome rng(Call& call) {
  const Dims dims = integersOf(*call.in[2]);
  const ElementType element = call.in[0]->element;
  Tensor out = makeTensor(element, dims);
  const int width = hostBytes(element);
  const bool normal = call.module.getString(call.id, AttrKey::rng_distribution) == "NORMAL";
  if (isComplex(element) || (normal && !isFloat(element)))
    return unsupported(call, llvm::Twine("on ") + elementTypeName(element));
  const double a = hlo::loadDouble(element, call.in[0]->bytes.data());
  const double b = hlo::loadDouble(element, call.in[1]->bytes.data());
  const int64_t low = integerAt(*call.in[0], 0);
  const uint64_t span = static_cast<uint64_t>(integerAt(*call.in[1], 0)) - static_cast<uint64_t>(low);
  std::array<uint64_t, 2> counter{};
  for (int64_t i = 0; i < out->numElements(); ++i) {
    uint32_t words[4];
    philoxWords({call.id.v, 0}, counter, 4, words);
    uint8_t* to = out->bytes.data() + i * width;
    const double u = words[0] * 0x1p-32, v = words[1] * 0x1p-32;
    if (normal) {
      const double radius = std::sqrt(-2 * math::log(1 - u));
      hlo::storeDouble(element, a + b * radius * math::cos(6.283185307179586 * v), to);
    } else if (isFloat(element)) {
      hlo::storeDouble(element, a + (b - a) * u, to);
    } else {
      const uint64_t bits = words[0] | static_cast<uint64_t>(words[1]) << 32;
      hlo::storeInt(element, low + static_cast<int64_t>(span ? bits % span : 0), to);
    }
  }
  return Tensors{out};
}

}  // namespace tpu::eval
