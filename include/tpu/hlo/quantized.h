// Quantized element types, as MLIR's quant dialect writes them: a storage integer, an expressed float, and
// scales and zero points for the whole tensor, per slice of one dimension, or per block of several.
//
// Type::encoding holds the text ("!quant.uniform<i8:f32, 0.1:-30>") and Type::element the storage type.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "tpu/hlo/module.h"

namespace tpu::hlo {

struct Quantization {
  ElementType storage = ElementType::kS8, expressed = ElementType::kF32;
  int64_t min = -128, max = 127;  // storage values in use
  // Empty: one scale for all. Else the dimensions that scales vary along and the elements that share one.
  llvm::SmallVector<int64_t, 2> axes, blocks;
  Dims shape;  // of the scales: one count per axis
  std::vector<double> scales;
  std::vector<int64_t> zero_points;
};

/// True for quantized types (static and, in programs not yet calibrated, statistics-free).
bool isQuantized(const Type& type);
/// None where the text is malformed; `why` then says how.
std::optional<Quantization> parseQuantization(llvm::StringRef text, std::string* why = nullptr);
/// The text in one spelling: shortest scales, zero points left out where all are 0.
std::string quantizationText(const Quantization& q);
/// The row of scales and zero points that an element of a tensor of these dims uses.
size_t scaleIndex(const Quantization& q, llvm::ArrayRef<int64_t> index);

}  // namespace tpu::hlo
