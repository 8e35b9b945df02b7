// Whether two arrays agree within a tolerance, and where they first do not.
#pragma once
#include <optional>
#include <string>

#include "llvm/ADT/StringRef.h"
#include "tpu/support/host_tensor.h"

namespace tpu::eval {

/// Elements agree where |got - want| <= absolute + relative * |want|, or where at most `ulps` values of the
/// type lie between.
struct Tolerance {
  double relative = 0, absolute = 0;
  int64_t ulps = 0;
  bool nan_equal = false;  // NaN agrees with NaN
};

/// By type: integers exact; f64 1e-10; f32 1e-5, or 2e-2 where dots make one bf16 pass ("default"), 1e-4 for
/// three ("high"); f16 2e-3; bf16 2e-2; narrower 0.1. Complex as its component. Relative and absolute part
/// are the same number.
Tolerance defaultTolerance(ElementType element, llvm::StringRef precision);

struct Difference {
  int64_t differing = 0;  // number of elements
  int64_t first = 0;      // row-major
  double largest = 0;     // |got - want|
};
/// None where all agree. Types and shapes must be the same.
std::optional<Difference> compareTensors(const HostTensor& got, const HostTensor& want,
                                         const Tolerance& tolerance);
/// How many values of the type lie from one element to the other; none for integers, NaN and complex values.
std::optional<uint64_t> ulpsApart(const HostTensor& a, const HostTensor& b, int64_t element);
/// "[1,2]" of a row-major index.
std::string indexText(llvm::ArrayRef<int64_t> dims, int64_t index);

}  // namespace tpu::eval
