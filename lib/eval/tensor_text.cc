// Parsing, drawing and printing of tensors.
#include "tpu/eval/tensor_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "llvm/ADT/StringExtras.h"
#include "loops.h"
#include "tpu/support/parallel.h"
#include "values.h"

namespace tpu::eval {
namespace {

llvm::Error bad(const llvm::Twine& text) { return fail(Code::kUsageError, "", text, ExitStatus::kUsage); }

// A number of an element's component into its bytes.
llvm::Error parseValue(llvm::StringRef text, ElementType element, uint8_t* out) {
  if (element == ElementType::kPred && (text == "true" || text == "false")) {
    *out = text == "true";
    return llvm::Error::success();
  }
  if (isInteger(element) || element == ElementType::kPred) {
    int64_t value;
    uint64_t large;
    if (text.getAsInteger(0, value)) {
      if (text.getAsInteger(0, large)) return bad("'" + text + "' is not an integer");
      value = static_cast<int64_t>(large);
    }
    const int bits = elementBits(element);
    if (bits < 64) {
      const int64_t low = isSigned(element) ? -(int64_t{1} << (bits - 1)) : 0;
      const int64_t high = (int64_t{1} << (isSigned(element) ? bits - 1 : bits)) - 1;
      if (value < low || value > high) return bad("'" + text + "' does not fit " + elementTypeName(element));
    }
    std::memcpy(out, &value, hostBytes(element));
    return llvm::Error::success();
  }
  double value;
  if (text.getAsDouble(value)) return bad("'" + text + "' is not a number");
  const Tensor one = scalarOf(element, value);
  std::copy(one->bytes.begin(), one->bytes.end(), out);
  return llvm::Error::success();
}

llvm::Error parseElement(llvm::StringRef text, ElementType element, uint8_t* out) {
  if (!isComplex(element)) return parseValue(text, element, out);
  const ElementType half = element == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
  const auto [re, im] = text.split(':');
  if (llvm::Error e = parseValue(re, half, out)) return e;
  return parseValue(im.empty() ? "0" : im, half, out + hostBytes(half));
}

constexpr int64_t kDrawnAtOnce = 1 << 14;

// SplitMix64 (Steele, Lea, Flood 2014).
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

std::string numberText(ElementType element, double value) {
  if (value != value) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  // The shortest text for the type: narrower floats print as the f32 they are.
  const auto end = element == ElementType::kF64
                       ? std::to_chars(buffer, buffer + sizeof(buffer), value).ptr
                       : std::to_chars(buffer, buffer + sizeof(buffer), static_cast<float>(value)).ptr;
  return std::string(buffer, end);
}

void printFrom(llvm::raw_ostream& os, const HostTensor& t, size_t dim, int64_t& index) {
  if (dim == t.dims.size()) {
    os << elementText(t, index++);
    return;
  }
  os << '[';
  for (int64_t i = 0; i < t.dims[dim]; ++i) {
    if (i) os << ", ";
    printFrom(os, t, dim + 1, index);
  }
  os << ']';
}

// |z| of every element.
Tensor modulusOf(const HostTensor& t) {
  const ElementType half = t.element == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
  Tensor out = makeTensor(half, t.dims);
  findUnary(Opcode::abs, t.element)(t.bytes.data(), out->bytes.data(), t.numElements());
  return out;
}

std::string shortNumber(double value) {
  if (value != value) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general, 5).ptr;
  return std::string(buffer, end);
}

}  // namespace

llvm::Expected<HostTensor> parseTensorType(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef, 6> parts;
  text.split(parts, 'x');
  const std::optional<ElementType> element = parseElementType(parts.back());
  llvm::SmallVector<int64_t, 6> dims;
  int64_t count = 1;
  bool fine = element.has_value();
  for (llvm::StringRef part : llvm::ArrayRef(parts).drop_back()) {
    int64_t dim = 0;
    fine = fine && !part.getAsInteger(10, dim) && dim >= 0 && !__builtin_mul_overflow(count, dim, &count) &&
           count < int64_t{1} << 40;
    dims.push_back(dim);
  }
  if (!fine) return bad("'" + text + "' is not a type such as 2x3xf32");
  return HostTensor(*element, dims);
}

llvm::Expected<HostTensor> parseTensor(llvm::StringRef text,
                                       llvm::function_ref<llvm::Error(llvm::StringRef, HostTensor&)> read) {
  auto [type, values] = text.split('=');
  auto tensor = parseTensorType(type);
  if (!tensor) return tensor;
  if (values.consume_front("@")) {
    if (llvm::Error e = read(values, *tensor)) return e;
    return tensor;
  }
  std::string plain;
  for (char c : values)
    if (c != '[' && c != ']' && c != ' ') plain += c;
  llvm::SmallVector<llvm::StringRef, 16> parts;
  llvm::StringRef(plain).split(parts, ',', -1, false);
  const int64_t n = tensor->numElements(), given = static_cast<int64_t>(parts.size());
  if (given != n && given != 1)
    return bad(type + " has " + llvm::Twine(n) + " elements, " + llvm::Twine(given) + " values were given");
  const int width = hostBytes(tensor->element);
  for (int64_t i = 0; i < n; ++i)
    if (llvm::Error e =
            parseElement(parts[given == 1 ? 0 : i], tensor->element, tensor->bytes.data() + i * width))
      return e;
  return tensor;
}

HostTensor drawTensor(ElementType element, llvm::ArrayRef<int64_t> dims, uint64_t seed, uint64_t stream) {
  const bool floats = isFloat(element) || isComplex(element);
  const int64_t per_element = isComplex(element) ? 2 : 1;
  const uint64_t base = mix(mix(seed) ^ stream);
  HostTensor shape(ElementType::kPred, dims);
  const int64_t n = shape.numElements() * per_element;
  const auto draw = [&](int64_t i) { return mix(base + static_cast<uint64_t>(i)); };
  HostTensor out(element, dims);
  // Blocks that fit a cache, on all threads.
  const auto blocks = [&](llvm::function_ref<void(int64_t, int64_t)> fill) {
    parallelFor(static_cast<size_t>((n + kDrawnAtOnce - 1) / kDrawnAtOnce), [&](size_t block) {
      const int64_t first = static_cast<int64_t>(block) * kDrawnAtOnce;
      fill(first, std::min(n, first + kDrawnAtOnce));
    });
  };
  if (floats) {
    const ElementType half = element == ElementType::kC64    ? ElementType::kF32
                             : element == ElementType::kC128 ? ElementType::kF64
                                                             : element;
    blocks([&](int64_t first, int64_t end) {
      Tensor wide = makeTensor(ElementType::kF64, {end - first});
      for (int64_t i = first; i < end; ++i)
        wide->data<double>()[i - first] = static_cast<double>(draw(i) >> 40) * 0x1p-23 - 1.0;
      const Tensor narrow = convertTo(wide, half);
      std::copy(narrow->bytes.begin(), narrow->bytes.end(), out.bytes.begin() + first * hostBytes(half));
    });
    return out;
  }
  const int bits = std::min(4, elementBits(element)), width = hostBytes(element);
  blocks([&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      int64_t value = static_cast<int64_t>(draw(i) >> (64 - bits));
      if (isSigned(element)) value -= int64_t{1} << (bits - 1);
      std::memcpy(out.bytes.data() + i * width, &value, width);
    }
  });
  return out;
}

std::string elementText(const HostTensor& t, int64_t i) {
  if (t.element == ElementType::kPred) return t.bytes[i] ? "true" : "false";
  if (t.element == ElementType::kU64) return std::to_string(static_cast<uint64_t>(integerAt(t, i)));
  if (isInteger(t.element)) return std::to_string(integerAt(t, i));
  if (t.element == ElementType::kC64)
    return numberText(ElementType::kF32, t.data<std::array<float, 2>>()[i][0]) + ":" +
           numberText(ElementType::kF32, t.data<std::array<float, 2>>()[i][1]);
  if (t.element == ElementType::kC128)
    return numberText(ElementType::kF64, t.data<std::array<double, 2>>()[i][0]) + ":" +
           numberText(ElementType::kF64, t.data<std::array<double, 2>>()[i][1]);
  return numberText(t.element, numberAt(t, i));
}

void printTensor(llvm::raw_ostream& os, const HostTensor& tensor) {
  int64_t index = 0;
  printFrom(os, tensor, 0, index);
}

std::string tensorSummary(const HostTensor& t) {
  std::string text = typeText(t.element, t.dims);
  const int64_t n = t.numElements();
  if (n == 0) return text + " empty";
  if (isComplex(t.element)) {
    const std::string facts = tensorSummary(*modulusOf(t));
    return text + " modulus" + facts.substr(facts.find(']') + 1);
  }
  const Tensor wide = convertTo(std::make_shared<HostTensor>(t), ElementType::kF64);
  double low = HUGE_VAL, high = -HUGE_VAL, sum = 0;
  int64_t nans = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double x = wide->data<double>()[i];
    if (x != x) {
      ++nans;
      continue;
    }
    low = std::fmin(low, x);
    high = std::fmax(high, x);
    sum += x;
  }
  if (nans < n)
    text += " min " + shortNumber(low) + " max " + shortNumber(high) + " mean " +
            shortNumber(sum / static_cast<double>(n - nans));
  if (nans) text += ", " + std::to_string(nans) + (nans == 1 ? " NaN" : " NaNs");
  return text;
}

}  // namespace tpu::eval
