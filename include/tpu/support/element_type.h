// Element types of tensors, registers and buffers: one table from which names, widths and classes are read.
// Spelled as in HLO in documents ("f32", "bf16", "s32", "pred"); readers also take MLIR's spellings ("i32", "ui8", "i1").
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace tpu {

enum class ElementType : uint8_t {
#define TPU_ELEMENT_TYPE(id, hlo, mlir, bits, cls) id,
#include "tpu/support/element_types.def"
};

enum class ElementClass : uint8_t { kPred, kSigned, kUnsigned, kFloat, kComplex, kOther };

inline constexpr int kNumElementTypes = 0
#define TPU_ELEMENT_TYPE(id, hlo, mlir, bits, cls) +1
#include "tpu/support/element_types.def"
    ;

/// HLO spelling, e.g. "bf16".
llvm::StringRef elementTypeName(ElementType type);
/// MLIR spelling, e.g. "i32", "ui8", "i1", "f8E4M3FN".
llvm::StringRef elementTypeMlirName(ElementType type);
/// "[2,3]"; a negative size, one that is not known, is '?'.
std::string dimsText(llvm::ArrayRef<int64_t> dims);
/// "f32[2,3]".
std::string typeText(ElementType element, llvm::ArrayRef<int64_t> dims);
/// Either spelling.
std::optional<ElementType> parseElementType(llvm::StringRef name);

/// Width in bits of the value (1 for pred, 4 for s4, 64 for c64).
int elementBits(ElementType type);
/// Bytes one element takes in a host array (npy, literals): pred and 2/4-bit types take one byte each.
int hostBytes(ElementType type);
ElementClass elementClass(ElementType type);
inline bool isFloat(ElementType t) { return elementClass(t) == ElementClass::kFloat; }
inline bool isComplex(ElementType t) { return elementClass(t) == ElementClass::kComplex; }
inline bool isSigned(ElementType t) { return elementClass(t) == ElementClass::kSigned; }
inline bool isUnsigned(ElementType t) { return elementClass(t) == ElementClass::kUnsigned; }
inline bool isInteger(ElementType t) { return isSigned(t) || isUnsigned(t); }

}  // namespace tpu
