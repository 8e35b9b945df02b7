// Cutting arguments into shards, laying them out in memory, and the way back.
#include "args.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "tpu/support/diagnostics.h"
#include "tpu/support/parallel.h"

namespace tpu::emulate {
namespace {

using isa::SignaturePort;
using Index = llvm::SmallVector<int64_t, 6>;

// pred stands in memory as bytes 0 and 1, as it does on the host.
ElementType storedType(ElementType type) { return type == ElementType::kPred ? ElementType::kU8 : type; }

// The part of the global array that a shard covers: the last shards of an uneven cut are shorter, or empty.
struct Part {
  Index first, size;
  bool empty = false, whole = true;
};
Part partOf(const SignaturePort& port, llvm::ArrayRef<int64_t> shard) {
  Part part;
  for (size_t d = 0; d < port.local_dims.size(); ++d) {
    const int64_t first = shard[d] * port.local_dims[d];
    const int64_t size = std::clamp<int64_t>(port.global_dims[d] - first, 0, port.local_dims[d]);
    part.first.push_back(first);
    part.size.push_back(size);
    part.empty |= size == 0;
    part.whole &= size == port.local_dims[d];
  }
  return part;
}

// Calls f(offset in the global array, offset in the local array, bytes) for runs along the last dimension.
template <class F>
void forEachRow(const SignaturePort& port, const Part& part, int64_t width, F f) {
  const size_t rank = part.size.size();
  if (part.empty) return;
  if (rank == 0) return f(0, 0, width);
  Index at(rank, 0);
  while (true) {
    int64_t global = 0, local = 0;
    for (size_t d = 0; d < rank; ++d) {
      global = global * port.global_dims[d] + part.first[d] + at[d];
      local = local * port.local_dims[d] + at[d];
    }
    f(global * width, local * width, part.size[rank - 1] * width);
    int d = static_cast<int>(rank) - 2;
    while (d >= 0 && ++at[static_cast<size_t>(d)] == part.size[static_cast<size_t>(d)])
      at[static_cast<size_t>(d--)] = 0;
    if (d < 0) return;
  }
}

int64_t elements(llvm::ArrayRef<int64_t> dims) {
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  return n;
}

// A shard as it stands in memory, with the bits that belong to elements.
struct Packed {
  std::vector<uint8_t> bytes, mask;
};
Packed pack(const SignaturePort& port, const HostTensor& global, const Part& part) {
  const ElementType type = storedType(port.element);
  const int64_t width = hostBytes(port.element), count = elements(port.local_dims);
  std::vector<uint8_t> host(static_cast<size_t>(count * width)), valid(host.size());
  forEachRow(port, part, width, [&](int64_t from, int64_t to, int64_t n) {
    std::memcpy(&host[static_cast<size_t>(to)], &global.bytes[static_cast<size_t>(from)],
                static_cast<size_t>(n));
    std::memset(&valid[static_cast<size_t>(to)], 0xff, static_cast<size_t>(n));
  });
  Packed packed;
  const auto size = static_cast<size_t>(isa::layoutBytes(port.layout, type, port.local_dims));
  packed.bytes.resize(size);
  packed.mask.resize(size);
  isa::packHost(port.layout, type, port.local_dims, host.data(), packed.bytes.data());
  isa::packHost(port.layout, type, port.local_dims, valid.data(), packed.mask.data());
  if (port.local_dims.empty())
    std::fill(packed.mask.begin(), packed.mask.end(), 0xff);  // a scalar fills its word
  return packed;
}

// Whole arrays of plain runs need no mask.
void packWhole(const SignaturePort& port, const HostTensor& global, uint8_t* to) {
  isa::packHost(port.layout, storedType(port.element), port.local_dims, global.bytes.data(), to);
}

// f(word of the array, word of `packed`, word of its mask) becomes the array's word; the rest by bytes.
template <class F>
void mergeInto(uint8_t* to, const Packed& packed, F f) {
  size_t i = 0;
  for (; i + 8 <= packed.bytes.size(); i += 8) {
    uint64_t old, bytes, mask;
    std::memcpy(&old, to + i, 8);
    std::memcpy(&bytes, &packed.bytes[i], 8);
    std::memcpy(&mask, &packed.mask[i], 8);
    old = f(old, bytes, mask);
    std::memcpy(to + i, &old, 8);
  }
  for (; i < packed.bytes.size(); ++i)
    to[i] = static_cast<uint8_t>(f(uint64_t{to[i]}, uint64_t{packed.bytes[i]}, uint64_t{packed.mask[i]}));
}

void merge(const Packed& packed, uint8_t* to, uint8_t* shadow) {
  mergeInto(to, packed, [](uint64_t old, uint64_t bytes, uint64_t mask) { return (old & ~mask) | (bytes & mask); });
  if (shadow) mergeInto(shadow, packed, [](uint64_t old, uint64_t, uint64_t mask) { return old & ~mask; });
}

// Of a timing-only run, which looks at nothing else, only SMEM is filled.
void store(const Machine& machine, ChipSim& chip, int64_t device, isa::Space space, int64_t address,
           const void* bytes, size_t n) {
  if (machine.mode == Mode::kTiming && space != isa::Space::kSmem) return;
  std::memcpy(chip.memory(device, space) + address, bytes, n);
  if (uint8_t* shadow = chip.shadow(device, space)) std::memset(shadow + address, 0, n);
}

void loadIdentity(const Machine& machine, ChipSim& chip, int64_t device) {
  const isa::Program& program = *machine.program;
  const auto id = static_cast<uint32_t>(device), count = static_cast<uint32_t>(program.devices);
  store(machine, chip, device, isa::Space::kSmem, isa::kDeviceIdAddress, &id, 4);
  store(machine, chip, device, isa::Space::kSmem, isa::kDeviceCountAddress, &count, 4);
  const auto words = static_cast<size_t>(program.device_table_words);
  if (words)
    store(machine, chip, device, isa::Space::kSmem, isa::kDeviceTableAddress,
          &program.device_table[static_cast<size_t>(device) * words], words * 4);
  for (const isa::Constant& c : program.constants)
    store(machine, chip, device, c.space, c.address, c.bytes.data(), c.bytes.size());
}

}  // namespace

llvm::Error checkArguments(const isa::Program& program, llvm::ArrayRef<HostTensor> args) {
  if (args.size() != program.args.size())
    return fail(
        Code::kEmuBadArguments, "",
        llvm::Twine(args.size()) + " arguments given, the program takes " + llvm::Twine(program.args.size()));
  for (size_t i = 0; i < args.size(); ++i) {
    const SignaturePort& port = program.args[i];
    if (args[i].element == port.element &&
        llvm::ArrayRef<int64_t>(args[i].dims) == llvm::ArrayRef<int64_t>(port.global_dims))
      continue;
    return fail(Code::kEmuBadArguments, port.loc,
                "argument " + llvm::Twine(i) + " '" + port.name +
                    "': " + typeText(args[i].element, args[i].dims) + " given, the program takes " +
                    typeText(port.element, port.global_dims));
  }
  return llvm::Error::success();
}

void loadDevices(const Machine& machine, Chips& chips, llvm::ArrayRef<HostTensor> args) {
  const isa::Program& program = *machine.program;
  for (int64_t device = 0; device < program.devices; ++device)
    loadIdentity(machine, *chips[static_cast<size_t>(machine.chip_of[static_cast<size_t>(device)])], device);
  parallelFor(args.size(), [&](size_t a) {
    const SignaturePort& port = program.args[a];
    if (machine.mode == Mode::kTiming && port.space != isa::Space::kSmem) return;
    std::map<std::vector<int64_t>, std::vector<int64_t>> holders;  // shard -> devices
    for (int64_t device = 0; device < program.devices; ++device) {
      const Index shard = shardOf(port, device);
      holders[{shard.begin(), shard.end()}].push_back(device);
    }
    for (const auto& [shard, devices] : holders) {
      if (!machine.strict && !port.global_dims.empty() && port.global_dims == port.local_dims) {
        ChipSim& first = *chips[static_cast<size_t>(machine.chip_of[static_cast<size_t>(devices.front())])];
        const uint8_t* packed = first.memory(devices.front(), port.space) + port.address;
        const auto bytes =
            static_cast<size_t>(isa::layoutBytes(port.layout, storedType(port.element), port.local_dims));
        packWhole(port, args[a], first.memory(devices.front(), port.space) + port.address);
        for (const int64_t device : llvm::ArrayRef<int64_t>(devices).drop_front())
          std::memcpy(chips[static_cast<size_t>(machine.chip_of[static_cast<size_t>(device)])]->memory(
                          device, port.space) +
                          port.address,
                      packed, bytes);
        continue;
      }
      const Packed packed = pack(port, args[a], partOf(port, shard));
      for (const int64_t device : devices) {
        ChipSim& chip = *chips[static_cast<size_t>(machine.chip_of[static_cast<size_t>(device)])];
        uint8_t* shadow = chip.shadow(device, port.space);
        merge(packed, chip.memory(device, port.space) + port.address,
              shadow ? shadow + port.address : nullptr);
      }
    }
  });
}

namespace {

// One device's part of a result, compared with what another device has written of it already.
llvm::Error collectPart(const SignaturePort& port, ChipSim& chip, int64_t device, bool first,
                        HostTensor& out) {
  const ElementType type = storedType(port.element);
  const int64_t width = hostBytes(port.element);
  const Part part = partOf(port, shardOf(port, device));
  if (part.empty) return llvm::Error::success();
  std::vector<uint8_t> local(static_cast<size_t>(elements(port.local_dims) * width)), undefined;
  isa::unpackHost(port.layout, type, port.local_dims, chip.memory(device, port.space) + port.address,
                  local.data());
  if (const uint8_t* shadow = chip.shadow(device, port.space)) {
    undefined.resize(local.size());
    isa::unpackHost(port.layout, type, port.local_dims, shadow + port.address, undefined.data());
  }
  int64_t differs = -1, unset = -1;
  forEachRow(port, part, width, [&](int64_t global, int64_t at, int64_t n) {
    uint8_t* to = &out.bytes[static_cast<size_t>(global)];
    const uint8_t* from = &local[static_cast<size_t>(at)];
    if (!undefined.empty() && unset < 0) {
      const auto begin = undefined.begin() + at,
                 bad = std::find_if(begin, begin + n, [](uint8_t x) { return x != 0; });
      if (bad != begin + n) unset = (global + (bad - begin)) / width;
    }
    if (first) {
      std::memcpy(to, from, static_cast<size_t>(n));
    } else if (differs < 0 && std::memcmp(to, from, static_cast<size_t>(n)) != 0) {
      differs = (global + (std::mismatch(to, to + n, from).first - to)) / width;
    }
  });
  const auto place = [&](int64_t element) {
    std::string text;
    for (size_t d = port.global_dims.size(); d-- > 0;) {
      text = std::to_string(element % port.global_dims[d]) + (text.empty() ? "" : "," + text);
      element /= port.global_dims[d];
    }
    return "[" + text + "]";
  };
  if (unset >= 0)
    return fail(Code::kEmuUndefined, port.loc,
                "element " + place(unset) + " of result '" + port.name + "' on device " +
                    llvm::Twine(device) + " is undefined");
  if (differs >= 0)
    return fail(Code::kEmuReplicas, port.loc,
                "element " + place(differs) + " of result '" + port.name + "' differs between device " +
                    llvm::Twine(device) + " and an earlier holder of the same part");
  return llvm::Error::success();
}

}  // namespace

llvm::Expected<std::vector<HostTensor>> collectResults(const Machine& machine, Chips& chips) {
  const isa::Program& program = *machine.program;
  std::vector<HostTensor> results;
  for (const SignaturePort& port : program.results) {
    HostTensor out(port.element, port.global_dims);
    std::map<std::vector<int64_t>, bool> seen;
    for (int64_t device = 0; device < program.devices; ++device) {
      const Index shard = shardOf(port, device);
      bool& again = seen[{shard.begin(), shard.end()}];
      ChipSim& chip = *chips[static_cast<size_t>(machine.chip_of[static_cast<size_t>(device)])];
      if (auto e = collectPart(port, chip, device, !again, out)) return e;
      again = true;
    }
    results.push_back(std::move(out));
  }
  return results;
}

}  // namespace tpu::emulate
