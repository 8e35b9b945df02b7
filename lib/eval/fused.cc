// Running a chain of elementwise ops over blocks of its elements.
#include "fused.h"

#include <algorithm>
#include <cstring>

#include "native.h"
#include "values.h"

namespace tpu::eval {
namespace {

constexpr int64_t kBlock = 512;
constexpr int64_t kSlotBytes = kBlock * 8 + 320;  // no fused type is wider; apart from a multiple of a page

// count elements of `width` bytes that walk round `line`, each `inner` times, from position `first` on.
template <class T>
void spread(const uint8_t* line_bytes, const FusedSource& s, int64_t first, int64_t n, uint8_t* out_bytes) {
  const T* line = reinterpret_cast<const T*>(line_bytes);
  T* out = reinterpret_cast<T*>(out_bytes);
  for (int64_t i = 0; i < n;) {
    const int64_t at = first + i, from = at / s.inner % s.count;
    if (s.inner == 1) {
      const int64_t run = std::min(n - i, s.count - from);
      std::memcpy(out + i, line + from, static_cast<size_t>(run) * sizeof(T));
      i += run;
    } else {
      const int64_t run = std::min(n - i, s.inner - at % s.inner);
      std::fill(out + i, out + i + run, line[from]);
      i += run;
    }
  }
}

void spreadAs(int width, const uint8_t* line, const FusedSource& s, int64_t first, int64_t n, uint8_t* out) {
  switch (width) {
    case 1:
      return spread<uint8_t>(line, s, first, n, out);
    case 2:
      return spread<uint16_t>(line, s, first, n, out);
    case 4:
      return spread<uint32_t>(line, s, first, n, out);
    default:
      return spread<uint64_t>(line, s, first, n, out);
  }
}

// The run over one part of the elements, with scratch memory of its own.
class Worker {
 public:
  Worker(const FusedChain& chain, llvm::ArrayRef<Tensor> in, HostTensor& out)
      : chain_(chain), in_(in), out_(out), scratch_(scratch(chain)), filled_(chain.sources.size()) {
    sources_.resize(chain.sources.size());
  }

  void run(int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; i += kBlock) block(i, std::min(kBlock, first + count - i));
  }

 private:
  static uint8_t* scratch(const FusedChain& chain) {
    thread_local HostBuffer memory;
    const size_t bytes = static_cast<size_t>(kSlotBytes) * (chain.slots + chain.sources.size() + 1);
    if (memory.size() < bytes) memory = HostBuffer::uninitialized(bytes);
    return memory.data();
  }
  uint8_t* slot(size_t i) { return scratch_ + i * kSlotBytes; }
  uint8_t* spare() { return slot(chain_.slots + chain_.sources.size()); }

  // The elements of a source for this block, in the type that arithmetic is done in.
  const uint8_t* source(size_t i, int64_t first, int64_t n) {
    const FusedSource& s = chain_.sources[i];
    const uint8_t* base = in_[i]->bytes.data();
    const int width = hostBytes(s.element);
    uint8_t* const own = slot(chain_.slots + i);
    if (s.count == 0) {
      if (isNative(s.element)) return base + first * width;
      widen(s.element, base + first * width, own, n);
      return own;
    }
    if (s.count == 1) {
      if (filled_[i]) return own;
      filled_[i] = true;
      n = kBlock;
    } else if (s.inner == 1 && isNative(s.element) && first % s.count + n <= s.count) {
      return base + first % s.count * width;
    }
    uint8_t* const raw = isNative(s.element) ? own : spare();
    spreadAs(width, base, s, first, n, raw);
    if (raw != own) widen(s.element, raw, own, n);
    return own;
  }

  void block(int64_t first, int64_t n) {
    for (size_t i = 0; i < chain_.sources.size(); ++i) sources_[i] = source(i, first, n);
    for (size_t i = 0; i < chain_.steps.size(); ++i) step(i, first, n);
  }

  const uint8_t* arg(const FusedStep& s, size_t i) {
    const int at = s.args[i];
    return at < 0 ? sources_[-1 - at] : slot(chain_.steps[at].slot);
  }

  void step(size_t i, int64_t first, int64_t n) {
    const FusedStep& s = chain_.steps[i];
    const bool last = i + 1 == chain_.steps.size(), native = isNative(s.to);
    const int width = hostBytes(s.to);
    uint8_t* const final = out_.bytes.data() + first * width;
    uint8_t* const target = last && native ? final : slot(s.slot);
    uint8_t* const narrowed = last ? final : spare();
    switch (s.kind) {
      case FusedStep::kUnary:
        s.unary(arg(s, 0), target, n);
        break;
      case FusedStep::kBinary:
        s.binary(arg(s, 0), arg(s, 1), target, n);
        break;
      case FusedStep::kSelect:
        findSelect(hostBytes(nativeType(s.to)))(arg(s, 0), arg(s, 1), arg(s, 2), target, n);
        break;
      case FusedStep::kConvert:
        if (native) {
          s.unary(arg(s, 0), target, n);
        } else if (nativeType(s.from) == ElementType::kF32) {
          narrow(s.to, arg(s, 0), narrowed, n);
        } else {  // one rounding, from f64
          s.unary(arg(s, 0), target, n);
          narrowFromF64(s.to, reinterpret_cast<const double*>(target), narrowed, n);
        }
        if (!native && !last) widen(s.to, narrowed, target, n);
        return;
    }
    if (native) return;
    narrow(s.to, target, narrowed, n);
    if (!last) widen(s.to, narrowed, target, n);
  }

  const FusedChain& chain_;
  llvm::ArrayRef<Tensor> in_;
  HostTensor& out_;
  uint8_t* scratch_;
  llvm::SmallVector<const uint8_t*, 8> sources_;
  llvm::SmallVector<bool, 8> filled_;
};

}  // namespace

Tensor FusedChain::run(llvm::MutableArrayRef<Tensor> in) const {
  const ElementType element = steps.back().to;
  Tensor out;
  for (size_t i = 0; i < sources.size() && !out; ++i)
    if (sources[i].count == 0 && in[i].use_count() == 1 && hostBytes(in[i]->element) == hostBytes(element))
      out = in[i];
  if (!out) out = rawTensor(element, dims);
  forChunks(out->numElements(),
            [&](int64_t first, int64_t count) { Worker(*this, in, *out).run(first, count); });
  out->element = element;
  return out;
}

}  // namespace tpu::eval
