// Constant data: encoding numbers into literal bytes and reading them back, for every element type.
// Bytes are little-endian in host layout (hostBytes per element; pred, 2/4-bit integers and 4/6-bit floats
// take one byte). Rounding to narrower floats is to nearest, ties to even; beyond the largest finite value it
// becomes infinity, or NaN where the format has no infinity, or the largest value where it has neither.
#pragma once
#include "tpu/hlo/module.h"

namespace tpu::hlo {

/// Writes one element. storeDouble on an integer type truncates towards zero and saturates; on a complex type
/// it sets the real part.
void storeDouble(ElementType element, double value, uint8_t* out);
void storeComplex(ElementType element, double real, double imag, uint8_t* out);
/// Integers wrap to the type's width; pred becomes value != 0; floats round.
void storeInt(ElementType element, int64_t value, uint8_t* out);
/// Real part as double; integers as their value.
double loadDouble(ElementType element, const uint8_t* in);
double loadImag(ElementType element, const uint8_t* in);
/// Integers sign- or zero-extended (u64 as its bits); pred 0 or 1; floats truncated.
int64_t loadInt(ElementType element, const uint8_t* in);
/// The element's bits, zero-extended (not for complex types).
uint64_t loadBits(ElementType element, const uint8_t* in);
void storeBits(ElementType element, uint64_t bits, uint8_t* out);

/// Bits of a double in a float format, and back.
uint64_t encodeFloat(ElementType element, double value);
double decodeFloat(ElementType element, uint64_t bits);

/// Splat literals of a tensor type.
Literal splatDouble(TypeId type, ElementType element, double value);
Literal splatInt(TypeId type, ElementType element, int64_t value);
/// Dense 1-d or any-shaped integer literal; one value per element.
Literal denseInts(TypeId type, ElementType element, llvm::ArrayRef<int64_t> values);

/// Element i of a literal, splat or not: a pointer to its hostBytes(element) bytes.
const uint8_t* literalElement(const Module& module, const Literal& literal, int64_t i);

/// Smallest and largest value of a type as an element's bits: identities of maximum and minimum (floats:
/// infinities where the format has them, else the largest finite value; pred false and true).
void storeLowest(ElementType element, uint8_t* out);
void storeHighest(ElementType element, uint8_t* out);

/// A compact spelling for people: "3", "-1.5", "0x7fc00000" for NaN bits, "(1,2)" for complex; shortest text
/// that reads back.
std::string elementText(ElementType element, const uint8_t* in);

/// The target of the custom_call that stands for a constant whose data the printer of the program left out, and what
/// stages that need the data say of it.
inline constexpr char kElidedConstant[] = "elided_constant";
inline constexpr char kElidedAdvice[] =
    "the data of this constant was left out when the program was printed; print it with print_large_constants "
    "(XLA_FLAGS=--xla_dump_large_constants=true)";

}  // namespace tpu::hlo
