// Reads and spells out lists of devices.
#include "tpu/sharding/device_list.h"

#include <algorithm>

#include "tpu/hlo/sharding_mistakes.h"

namespace tpu::sharding {

bool readInts(llvm::StringRef& text, char open, char close, Ints& out) {
  text = text.ltrim();
  if (!text.consume_front(llvm::StringRef(&open, 1))) return false;
  while (!text.consume_front(llvm::StringRef(&close, 1))) {
    int64_t v;
    text = text.ltrim(" ,");
    if (text.consumeInteger(10, v)) return false;
    out.push_back(v);
    text = text.ltrim();
  }
  return true;
}

std::string commaList(llvm::ArrayRef<int64_t> list) {
  std::string out;
  for (int64_t v : list) out += (out.empty() ? "" : ",") + std::to_string(v);
  return out;
}

int64_t productOf(llvm::ArrayRef<int64_t> list) {
  int64_t n = 1;
  for (int64_t v : list) {
    if (v <= 0 || __builtin_mul_overflow(n, v, &n) || n > int64_t{1} << 32) return -1;
  }
  return n;
}

std::string readIota(llvm::StringRef& text, int64_t devices, DeviceList& out) {
  if (!readInts(text, '[', ']', out.iota)) return "expected an iota shape";
  if (text.consume_front("T") && !readInts(text, '(', ')', out.perm)) return "expected a permutation";
  if (out.perm.empty()) {
    for (size_t i = 0; i < out.iota.size(); ++i) out.perm.push_back(static_cast<int64_t>(i));
  }
  if (out.perm.size() != out.iota.size() || !hlo::permutationText(out.perm).empty())
    return "T(" + commaList(out.perm) + ") does not permute the iota shape [" + commaList(out.iota) + "]; name each of its " +
           std::to_string(out.iota.size()) + " dimensions once";
  if (productOf(out.iota) != devices)
    return "the iota [" + commaList(out.iota) + "] has another number of devices than the tiles; write [" + std::to_string(devices) + "]";
  return "";
}

std::string readIds(llvm::StringRef& text, int64_t devices, DeviceList& out) {
  for (int64_t id; !text.ltrim(" ,").consumeInteger(10, id);) {
    text = text.ltrim(" ,");
    text.consumeInteger(10, id);
    out.ids.push_back(id);
  }
  if (static_cast<int64_t>(out.ids.size()) != devices)
    return std::to_string(out.ids.size()) + " devices are listed for " + std::to_string(devices) + " tiles; the iota [" +
           std::to_string(devices) + "] names all in order";
  const std::string wrong = hlo::permutationText(out.ids);
  return wrong.empty() ? "" : "the device list is no permutation: " + wrong;
}

Ints devicesOf(const DeviceList& list) {
  if (list.iota.empty()) return list.ids;
  Ints out;
  for (int64_t i = 0, n = productOf(list.iota); i < n; ++i) {
    int64_t rest = i, id = 0;
    Ints at(list.iota.size(), 0);
    for (size_t k = list.perm.size(); k-- > 0;) {
      at[list.perm[k]] = rest % list.iota[list.perm[k]];
      rest /= list.iota[list.perm[k]];
    }
    for (size_t k = 0; k < at.size(); ++k) id = id * list.iota[k] + at[k];
    out.push_back(id);
  }
  return out;
}

}  // namespace tpu::sharding
