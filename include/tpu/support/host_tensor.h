// A whole array in the memory of the host: what files hold, what the evaluator computes with, what goes into
// and comes out of emulated chips. Row-major, hostBytes(element) bytes per element (pred and the 2- and 4-bit
// types take one byte each; signed narrow types are sign-extended into it), little endian.
#pragma once
#include <cassert>
#include <cstdint>
#include <cstring>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "tpu/support/element_type.h"
#include "tpu/support/host_buffer.h"

namespace tpu {

struct HostTensor {
  ElementType element = ElementType::kF32;
  llvm::SmallVector<int64_t, 6> dims;
  HostBuffer bytes;

  HostTensor() = default;
  /// All elements zero.
  HostTensor(ElementType element, llvm::ArrayRef<int64_t> dims)
      : element(element), dims(dims.begin(), dims.end()), bytes(static_cast<size_t>(numElements()) * hostBytes(element)) {}
  /// Elements of any value: for those who write all of them.
  static HostTensor uninitialized(ElementType element, llvm::ArrayRef<int64_t> dims) {
    HostTensor t;
    t.element = element;
    t.dims.assign(dims.begin(), dims.end());
    t.bytes = HostBuffer::uninitialized(static_cast<size_t>(t.numElements()) * hostBytes(element));
    return t;
  }

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  /// Product of dims; 1 for a scalar.
  int64_t numElements() const {
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    return count;
  }
  /// The elements as T, which must have hostBytes(element) bytes.
  template <class T>
  T* data() {
    assert(sizeof(T) == static_cast<size_t>(hostBytes(element)));
    return reinterpret_cast<T*>(bytes.data());
  }
  template <class T>
  const T* data() const {
    assert(sizeof(T) == static_cast<size_t>(hostBytes(element)));
    return reinterpret_cast<const T*>(bytes.data());
  }
  friend bool operator==(const HostTensor&, const HostTensor&) = default;
};

}  // namespace tpu
