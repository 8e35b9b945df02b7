// What an array file holds, and the elements of a program's type that it can stand for.
#include "tpu/serial/array_file.h"
#include "tpu/support/diagnostics.h"
#include "tpu/support/files.h"

namespace tpu {
namespace {

// The type that numpy's kind and width name; none for raw bytes.
std::optional<ElementType> namedType(const FileArray& a) {
  if (a.element) return a.element;
  const auto pick = [&](ElementType one, ElementType two, ElementType four, ElementType eight) {
    return a.width == 1 ? one : a.width == 2 ? two : a.width == 4 ? four : eight;
  };
  switch (a.kind) {
    case 'b':
      return ElementType::kPred;
    case 'i':
      return pick(ElementType::kS8, ElementType::kS16, ElementType::kS32, ElementType::kS64);
    case 'u':
      return pick(ElementType::kU8, ElementType::kU16, ElementType::kU32, ElementType::kU64);
    case 'f':
      if (a.width < 2 || a.width > 8) return std::nullopt;
      return pick(ElementType::kF16, ElementType::kF16, ElementType::kF32, ElementType::kF64);
    case 'c':
      if (a.width < 8) return std::nullopt;
      return a.width == 8 ? ElementType::kC64 : ElementType::kC128;
    default:
      return std::nullopt;
  }
}

bool isInteger(const FileArray& a) {
  return a.element ? tpu::isInteger(*a.element) : a.kind == 'i' || a.kind == 'u';
}

// 2- and 4-bit integers stand one to a byte, the signed ones sign-extended.
bool fitsNarrow(const FileArray& a, ElementType element) {
  const int bits = elementBits(element);
  for (uint8_t byte : a.bytes) {
    const int value = isSigned(element) ? static_cast<int8_t>(byte) : byte;
    if (isSigned(element) ? value < -(1 << (bits - 1)) || value >= 1 << (bits - 1) : value >= 1 << bits)
      return false;
  }
  return true;
}

}  // namespace

std::string describe(const FileArray& a) {
  if (const auto type = namedType(a)) return typeText(*type, a.dims);
  return std::string(1, a.kind) + std::to_string(a.width) + dimsText(a.dims);
}

llvm::Expected<HostTensor> toTensor(FileArray a, ElementType element, bool bits, llvm::StringRef what) {
  const bool narrow = tpu::isInteger(element) && elementBits(element) < 8;
  const bool raw = a.kind == 'V' && !a.element && a.width <= 2 && (isFloat(element) || narrow);
  const bool as_bits = bits && isInteger(a);
  bool fits = a.width == hostBytes(element) &&
              (namedType(a) == element || raw || as_bits || (narrow && isInteger(a)));
  if (!fits)
    return fail(
        Code::kBadArray, "",
        what + ": the file holds " + describe(a) + ", the program takes " + typeText(element, a.dims) +
            (a.width == hostBytes(element) && isInteger(a) ? " (bits@FILE takes integers as raw bits)" : ""));
  if (narrow && !fitsNarrow(a, element))
    return fail(Code::kBadArray, "", what + ": a value does not fit " + elementTypeName(element));
  HostTensor out;
  out.element = element;
  out.dims = a.dims;
  out.bytes = std::move(a.bytes);
  return out;
}

llvm::Expected<std::vector<FileArray>> readArrayFile(llvm::StringRef path) {
  auto in = readInput(path);
  if (!in) return in.takeError();
  const llvm::StringRef bytes(in->bytes);
  if (bytes.starts_with("\x93NUMPY")) {
    auto array = readNpy(bytes, in->name);
    if (!array) return array.takeError();
    std::vector<FileArray> out;
    out.push_back(std::move(*array));
    return out;
  }
  if (bytes.starts_with("PK")) return readNpz(bytes, in->name);
  if (bytes.size() > 8 && bytes[8] == '{') return readSafetensors(bytes, in->name);
  return fail(Code::kBadArray, in->name, "neither .npy, .npz nor safetensors");
}

}  // namespace tpu
