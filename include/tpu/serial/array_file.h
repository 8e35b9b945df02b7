// Arrays in files: .npy, .npz (stored or deflated) and safetensors, read and written.
//
// Types that numpy has no name for (bf16, fp8, int4) stand as ml_dtypes writes them: void elements of 2 or 1
// bytes
// (|V2, |V1), 2- and 4-bit integers one to a byte. A file therefore may not say which type it holds; toTensor
// decides by the type that the program asks for. Refusals are kBadArray with the file's name.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "tpu/support/host_tensor.h"

namespace tpu {

/// An array as the file has it: row-major, little endian.
struct FileArray {
  std::string name;                    // inside an .npz (without ".npy") or safetensors; else empty
  char kind = 'f';                     // numpy's letter: b i u f c, V for raw bytes
  int width = 4;                       // bytes per element
  std::optional<ElementType> element;  // where the file names the type
  llvm::SmallVector<int64_t, 6> dims;
  std::vector<uint8_t> bytes;
};

llvm::Expected<FileArray> readNpy(llvm::StringRef bytes, llvm::StringRef where);
llvm::Expected<std::vector<FileArray>> readNpz(llvm::StringRef bytes, llvm::StringRef where);
llvm::Expected<std::vector<FileArray>> readSafetensors(llvm::StringRef bytes, llvm::StringRef where);
/// Any of the three, by content. `path` as in readInput.
llvm::Expected<std::vector<FileArray>> readArrayFile(llvm::StringRef path);

struct NamedTensor {
  std::string name;
  const HostTensor* tensor;
};
std::string writeNpy(const HostTensor& tensor);
/// Stored, no dates: the same bytes for the same arrays.
std::string writeNpz(llvm::ArrayRef<NamedTensor> tensors);
std::string writeSafetensors(llvm::ArrayRef<NamedTensor> tensors);

/// "f32[2,3]"; "V2[2,3]" where only the width is known.
std::string describe(const FileArray& array);

/// The array as elements of `element`. With `bits`, integers of the same width are taken as the raw bits of
/// the element. A file of another type is refused, `what` ("input 0 'x'") and both types named.
llvm::Expected<HostTensor> toTensor(FileArray array, ElementType element, bool bits, llvm::StringRef what);

}  // namespace tpu
