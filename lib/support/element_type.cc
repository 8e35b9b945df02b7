// Names, widths and classes of element types, read off element_types.def.
#include "tpu/support/element_type.h"

#include <array>

namespace tpu {
namespace {

struct Row {
  llvm::StringLiteral hlo, mlir;
  int bits;
  ElementClass cls;
};

constexpr Row kRows[] = {
#define TPU_ELEMENT_TYPE(id, hlo, mlir, bits, cls) {hlo, mlir, bits, ElementClass::cls},
#include "tpu/support/element_types.def"
};

const Row& row(ElementType type) { return kRows[static_cast<int>(type)]; }

}  // namespace

llvm::StringRef elementTypeName(ElementType type) { return row(type).hlo; }
llvm::StringRef elementTypeMlirName(ElementType type) { return row(type).mlir; }

std::string dimsText(llvm::ArrayRef<int64_t> dims) {
  std::string text = "[";
  for (size_t d = 0; d < dims.size(); ++d) text += (d ? "," : "") + (dims[d] < 0 ? "?" : std::to_string(dims[d]));
  return text + "]";
}

std::string typeText(ElementType element, llvm::ArrayRef<int64_t> dims) {
  return elementTypeName(element).str() + dimsText(dims);
}
int elementBits(ElementType type) { return row(type).bits; }
int hostBytes(ElementType type) { return (row(type).bits + 7) / 8; }
ElementClass elementClass(ElementType type) { return row(type).cls; }

std::optional<ElementType> parseElementType(llvm::StringRef name) {
  for (int i = 0; i < kNumElementTypes; ++i)
    if (name == kRows[i].hlo || name == kRows[i].mlir) return static_cast<ElementType>(i);
  // MLIR writes signed integers as "i32"; StableHLO's older texts and numpy-like spellings say "si32".
  if (name.consume_front("si"))
    for (int i = 0; i < kNumElementTypes; ++i)
      if (kRows[i].cls == ElementClass::kSigned && name == kRows[i].mlir.drop_front(1)) return static_cast<ElementType>(i);
  return std::nullopt;
}

}  // namespace tpu
