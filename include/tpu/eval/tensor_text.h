// Tensors on a command line and on a screen: "2x3xf32=1,2,3,4,5,6", drawn values, one line of facts, all
// values in brackets.
#pragma once
#include <cstdint>
#include <string>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include "tpu/support/host_tensor.h"

namespace tpu::eval {

/// The type in front of a literal: "2x3xf32", "f32" for a scalar. MLIR's and HLO's spellings of the element.
llvm::Expected<HostTensor> parseTensorType(llvm::StringRef text);
/// "TYPE=VALUES": as many values as elements, or one for all, separated by commas; brackets are ignored.
/// Complex values as re:im. `read` is called for VALUES of the form "@FILE" with the tensor to fill from raw
/// little-endian bytes.
llvm::Expected<HostTensor> parseTensor(
    llvm::StringRef text, llvm::function_ref<llvm::Error(llvm::StringRef file, HostTensor& into)> read);

/// Reproducible values: element i of stream `stream` depends on (seed, stream, i) alone. Floats are uniform
/// in [-1, 1) in steps of 2^-23 (rounded to the type), signed integers in -8..7, unsigned ones in 0..15,
/// narrower where the type is, pred 0 or 1.
HostTensor drawTensor(ElementType element, llvm::ArrayRef<int64_t> dims, uint64_t seed, uint64_t stream);

/// One value as the shortest text that reads back ("0.1", "-inf", "nan", "true", "1:2" for complex).
std::string elementText(const HostTensor& tensor, int64_t index);
/// Nested brackets on one line.
void printTensor(llvm::raw_ostream& os, const HostTensor& tensor);
/// "f32[2,3] min -1 max 4 mean 0.5" and the number of NaNs where there are any.
std::string tensorSummary(const HostTensor& tensor);

}  // namespace tpu::eval
