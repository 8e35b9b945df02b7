// Reductions. One op on one operand folds by a typed loop: partial sums over blocks of 64 joined pairwise, in
// the type that arithmetic is done in, rounded once at the end. Any other region folds neighbours pairwise,
// whole vectors at a time.
#include <algorithm>

#include "loops.h"
#include "native.h"
#include "tpu/support/parallel.h"
#include "values.h"

namespace tpu::eval {
namespace {

constexpr int64_t kRun = 64;        // terms in one chain
constexpr int64_t kColumns = 1024;  // elements of a row handled together

// An array seen as [outer, k, inner], k reduced.
struct Folded {
  int64_t outer = 1, k = 1, inner = 1;
};

using FoldFn = void (*)(const uint8_t* in, const Folded& shape, uint8_t* out);

// out[0..width) = fold over k rows `stride` apart.
template <class T, class F>
void foldColumns(const T* in, int64_t stride, int64_t k, int64_t width, T* out, F f) {
  if (k > kRun) {
    const int64_t half = (k / 2 + kRun - 1) / kRun * kRun;
    T rest[kColumns];
    foldColumns(in, stride, half, width, out, f);
    foldColumns(in + half * stride, stride, k - half, width, rest, f);
    for (int64_t i = 0; i < width; ++i) out[i] = f(out[i], rest[i]);
    return;
  }
  std::copy(in, in + width, out);
  for (int64_t j = 1; j < k; ++j)
    for (int64_t i = 0; i < width; ++i) out[i] = f(out[i], in[j * stride + i]);
}

// A contiguous row: eight interleaved chains.
template <class T, class F>
T foldRow(const T* in, int64_t k, F f) {
  constexpr int64_t kChains = 8;
  if (k > kRun * kChains) {
    const int64_t half = (k / 2 + kChains - 1) / kChains * kChains;
    return f(foldRow(in, half, f), foldRow(in + half, k - half, f));
  }
  if (k < 2 * kChains) {
    T sum = in[0];
    for (int64_t j = 1; j < k; ++j) sum = f(sum, in[j]);
    return sum;
  }
  T sum[kChains];
  std::copy(in, in + kChains, sum);
  int64_t j = kChains;
  for (; j + kChains <= k; j += kChains)
    for (int64_t c = 0; c < kChains; ++c) sum[c] = f(sum[c], in[j + c]);
  for (int64_t c = 0; j < k; ++j, ++c) sum[c] = f(sum[c], in[j]);
  for (int64_t c = kChains / 2; c > 0; c /= 2)
    for (int64_t i = 0; i < c; ++i) sum[i] = f(sum[i], sum[i + c]);
  return sum[0];
}

template <class T, class F>
void fold(const uint8_t* in_bytes, const Folded& s, uint8_t* out_bytes, F f) {
  const T* in = reinterpret_cast<const T*>(in_bytes);
  T* out = reinterpret_cast<T*>(out_bytes);
  const int64_t blocks = (s.inner + kColumns - 1) / kColumns;
  const auto one = [&](size_t task) {
    const int64_t o = static_cast<int64_t>(task) / blocks, b = static_cast<int64_t>(task) % blocks * kColumns;
    const T* from = in + o * s.k * s.inner;
    if (s.inner == 1) {
      out[o] = foldRow(from, s.k, f);
    } else {
      foldColumns(from + b, s.inner, s.k, std::min(kColumns, s.inner - b), out + o * s.inner + b, f);
    }
  };
  const int64_t tasks = s.outer * blocks;
  if (s.outer * s.k * s.inner < 1 << 17) {
    for (int64_t t = 0; t < tasks; ++t) one(t);
  } else {
    parallelFor(tasks, one);
  }
}

template <class T>
T larger(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) return ieeeMaximum(x, y);
  return x > y ? x : y;
}

template <class T>
T smaller(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) return ieeeMinimum(x, y);
  return x < y ? x : y;
}

template <class T>
FoldFn foldOf(Opcode op) {
  using W = std::conditional_t<std::is_floating_point_v<T>, T,
                               std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;
  switch (op) {
    case Opcode::add:
      return [](auto in, auto& s, auto out) {
        fold<T>(in, s, out, [](T x, T y) { return static_cast<T>(W(x) + W(y)); });
      };
    case Opcode::multiply:
      return [](auto in, auto& s, auto out) {
        fold<T>(in, s, out, [](T x, T y) { return static_cast<T>(W(x) * W(y)); });
      };
    case Opcode::maximum:
      return [](auto in, auto& s, auto out) { fold<T>(in, s, out, larger<T>); };
    case Opcode::minimum:
      return [](auto in, auto& s, auto out) { fold<T>(in, s, out, smaller<T>); };
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == Opcode::and_)
      return [](auto in, auto& s, auto out) { fold<T>(in, s, out, [](T x, T y) { return T(x & y); }); };
    if (op == Opcode::or_)
      return [](auto in, auto& s, auto out) { fold<T>(in, s, out, [](T x, T y) { return T(x | y); }); };
  }
  return nullptr;
}

FoldFn findFold(Opcode op, ElementType native) {
  switch (native) {
    case ElementType::kPred:
      if (op == Opcode::add || op == Opcode::maximum) op = Opcode::or_;
      if (op == Opcode::multiply || op == Opcode::minimum) op = Opcode::and_;
      return foldOf<uint8_t>(op);
    case ElementType::kU8:
      return foldOf<uint8_t>(op);
    case ElementType::kS8:
      return foldOf<int8_t>(op);
    case ElementType::kS16:
      return foldOf<int16_t>(op);
    case ElementType::kU16:
      return foldOf<uint16_t>(op);
    case ElementType::kS32:
      return foldOf<int32_t>(op);
    case ElementType::kU32:
      return foldOf<uint32_t>(op);
    case ElementType::kS64:
      return foldOf<int64_t>(op);
    case ElementType::kU64:
      return foldOf<uint64_t>(op);
    case ElementType::kF32:
      return foldOf<float>(op);
    case ElementType::kF64:
      return foldOf<double>(op);
    default:
      return nullptr;
  }
}

struct Plan {
  Folded shape;
  Dims result;       // kept dims
  Dims permutation;  // to make the reduced dims neighbours; empty when they are
};

Plan makePlan(const HostTensor& t, llvm::ArrayRef<int64_t> reduced) {
  Plan plan;
  Dims order(reduced.begin(), reduced.end()), kept;
  std::sort(order.begin(), order.end());
  for (int64_t d = 0; d < t.rank(); ++d)
    if (!llvm::is_contained(order, d)) kept.push_back(d);
  for (int64_t d : kept) plan.result.push_back(t.dims[d]);
  for (int64_t d : order) plan.shape.k *= t.dims[d];
  const bool neighbours =
      order.empty() || order.back() - order.front() + 1 == static_cast<int64_t>(order.size());
  for (int64_t d : kept) {
    int64_t& side = neighbours && !order.empty() && d > order.front() ? plan.shape.inner : plan.shape.outer;
    side *= t.dims[d];
  }
  if (neighbours) return plan;
  plan.permutation = kept;
  plan.permutation.append(order.begin(), order.end());
  return plan;
}

// The reduced dims as rows of one vector per index: [k, kept...].
Tensor rowsFirst(const Tensor& t, llvm::ArrayRef<int64_t> reduced) {
  Dims permutation(reduced.begin(), reduced.end());
  std::sort(permutation.begin(), permutation.end());
  for (int64_t d = 0; d < t->rank(); ++d)
    if (!llvm::is_contained(reduced, d)) permutation.push_back(d);
  return transposed(t, permutation);
}

// Every second row, from `first` on, `count` of them.
Tensor everySecond(const HostTensor& t, int64_t first, int64_t count, int64_t width) {
  Tensor out = rawTensor(t.element, {count * width});
  const int bytes = hostBytes(t.element);
  stridedCopy({count, width}, bytes, t.bytes.data() + first * width * bytes, {2 * width, 1},
              out->bytes.data(), {width, 1});
  return out;
}

Tensor joinRows(const Tensor& a, const HostTensor& whole, int64_t from_element) {
  const int64_t rest = whole.numElements() - from_element;
  Tensor out = rawTensor(a->element, {a->numElements() + rest});
  const size_t bytes = hostBytes(a->element);
  std::copy(a->bytes.begin(), a->bytes.end(), out->bytes.begin());
  std::copy(whole.bytes.begin() + from_element * bytes, whole.bytes.end(),
            out->bytes.begin() + a->bytes.size());
  return out;
}

// Folds k rows by the region: neighbours pairwise, so that the order of the elements is kept.
Outcome foldByRegion(const Call& call, Tensors rows, int64_t k, int64_t width, llvm::ArrayRef<Tensor> init) {
  const hlo::RegionId region = call.region();
  Tensors start;
  for (const Tensor& t : init) start.push_back(splatTo(t, {width}));
  if (k == 0 || width == 0) return start;
  while (k > 1) {
    llvm::SmallVector<Tensor, 4> args;
    for (const Tensor& t : rows) args.push_back(everySecond(*t, 0, k / 2, width));
    for (const Tensor& t : rows) args.push_back(everySecond(*t, 1, k / 2, width));
    Outcome joined = runBatched(call, region, args);
    if (!joined) return joined;
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i] = k % 2 ? joinRows((*joined)[i], *rows[i], (k - 1) * width) : (*joined)[i];
    k = (k + 1) / 2;
  }
  llvm::SmallVector<Tensor, 4> args(start.begin(), start.end());
  for (Tensor& t : rows) args.push_back(reshaped(t, {width}));
  return runBatched(call, region, args);
}

}  // namespace

Tensor foldSingle(Opcode op, Tensor in, llvm::ArrayRef<int64_t> reduced, Tensor init) {
  const ElementType element = init->element, native = nativeType(element);
  const FoldFn fn = findFold(op, native);
  if (!fn) return nullptr;
  const Plan plan = makePlan(*in, reduced);
  Tensor start = splatTo(convertTo(init, native), plan.result);
  if (plan.shape.k == 0 || in->bytes.empty()) return convertTo(start, element);
  if (!plan.permutation.empty()) in = transposed(in, plan.permutation);
  in = convertTo(in, native);
  Tensor out = rawTensor(native, plan.result);
  fn(in->bytes.data(), plan.shape, out->bytes.data());
  return convertTo(binaryOf(op, start, out), element);
}

Outcome reduce(Call& call) {
  const size_t n = call.in.size() / 2;
  const llvm::ArrayRef<int64_t> dims = call.ints(AttrKey::dimensions);
  if (n == 1) {
    if (const auto op = singleOp(call.module, call.region()))
      if (Tensor out = foldSingle(*op, call.in[0], dims, call.in[1])) return Tensors{out};
  }
  const Plan plan = makePlan(*call.in[0], dims);
  int64_t width = 1;
  for (int64_t d : plan.result) width *= d;
  Tensors rows;
  for (size_t i = 0; i < n; ++i)
    rows.push_back(rowsFirst(convertTo(call.in[i], call.in[n + i]->element), dims));
  Outcome out = foldByRegion(call, std::move(rows), plan.shape.k, width, call.in.drop_front(n));
  if (!out) return out;
  for (Tensor& t : *out) t = reshaped(std::move(t), plan.result);
  return out;
}

}  // namespace tpu::eval
