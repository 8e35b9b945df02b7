// Lists of devices as XLA prints them: [4,2]T(1,0), the numbers of a shape read with its dimensions in another order, or
// 0,2,1,3 one by one.
#pragma once
#include <string>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace tpu::sharding {

using Ints = llvm::SmallVector<int64_t, 8>;

struct DeviceList {
  Ints iota, perm;  // the shape and the order of its dimensions
  Ints ids;         // or the list
};

/// "[1,2]" from the front of `text`.
bool readInts(llvm::StringRef& text, char open, char close, Ints& out);
/// -1 where an entry is not positive or the product exceeds 2^32.
int64_t productOf(llvm::ArrayRef<int64_t> list);

std::string commaList(llvm::ArrayRef<int64_t> list);

/// Both read a list of all of 0..devices-1 from the front of `text`. Empty where understood, otherwise why not, and what to
/// write instead.
std::string readIota(llvm::StringRef& text, int64_t devices, DeviceList& out);
std::string readIds(llvm::StringRef& text, int64_t devices, DeviceList& out);

/// The devices one by one. The list must be one that readIota or readIds accept.
Ints devicesOf(const DeviceList& list);

}  // namespace tpu::sharding
