// What a run takes from the host before it has computed anything: global arrays, and the device memory that the
// program has placed something in. Emulated memory costs nothing until it is touched, so what no buffer, port or
// constant covers is not counted.
#include <algorithm>

#include "tpu/emulate/emulate.h"
#include "tpu/emulate/llo_interpreter.h"
#include "tpu/support/host_memory.h"

namespace tpu::emulate {
namespace {

int64_t wholeBytes(const isa::SignaturePort& port) {
  int64_t bytes = hostBytes(port.element);
  for (int64_t d : port.global_dims) bytes = mulBytes(bytes, d);
  return bytes;
}

struct Range {
  int64_t first, bytes;
};

// The union's size.
int64_t covered(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  int64_t total = 0, end = 0;
  for (const Range& r : ranges) {
    const int64_t last = addBytes(r.first, r.bytes);
    total = addBytes(total, std::max<int64_t>(0, last - std::max(end, r.first)));
    end = std::max(end, last);
  }
  return total;
}

llvm::Error require(int64_t per_device, int64_t devices, int64_t arrays, llvm::StringRef loc) {
  return requireHostMemory(addBytes(arrays, mulBytes(per_device, devices)), loc,
                           "running the program on " + llvm::Twine(devices) + (devices == 1 ? " device" : " devices"));
}

}  // namespace

llvm::Error requireMemory(const isa::Program& program, bool strict) {
  std::vector<Range> hbm;
  const isa::PlacedBuffer* largest = nullptr;
  for (const isa::PlacedBuffer& b : program.buffers) {
    if (b.space != isa::Space::kHbm) continue;
    hbm.push_back({b.address, b.bytes});
    if (!largest || b.bytes > largest->bytes) largest = &b;
  }
  for (const isa::Constant& c : program.constants)
    if (c.space == isa::Space::kHbm) hbm.push_back({c.address, static_cast<int64_t>(c.bytes.size())});
  int64_t arrays = 0;
  for (const auto* ports : {&program.args, &program.results})
    for (const isa::SignaturePort& port : *ports) {
      arrays = addBytes(arrays, wholeBytes(port));
      if (port.space == isa::Space::kHbm)
        hbm.push_back({port.address, isa::layoutBytes(port.layout, port.element, port.local_dims)});
    }
  const int64_t copies = strict ? 2 : 1;  // values and their definedness
  return require(mulBytes(covered(std::move(hbm)), copies), program.devices, arrays, largest ? largest->loc : "");
}

llvm::Error requireMemory(const llo::Module& module) {
  int64_t per_device = 0, arrays = 0;
  const llo::Buffer* largest = nullptr;
  for (const llo::Buffer& b : module.buffers) {
    if (b.alias >= 0) continue;
    per_device = addBytes(per_device, std::max<int64_t>(0, b.bytes));
    if (!largest || b.bytes > largest->bytes) largest = &b;
  }
  for (const auto* ports : {&module.args, &module.results})
    for (const llo::Port& port : *ports) arrays = addBytes(arrays, wholeBytes(port.signature));
  return require(per_device, module.devices, arrays, largest ? llvm::StringRef(module.locs[largest->loc]) : "");
}

}  // namespace tpu::emulate
