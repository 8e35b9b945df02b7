// Runs a whole llo module: arguments cut per device, devices in turns, results assembled.
#include "tpu/emulate/llo_interpreter.h"

#include <algorithm>
#include <cstring>

#include "device.h"
#include "tpu/support/diagnostics.h"

namespace tpu::emulate {
namespace {

using llo_run::Device;
using llo_run::Pod;
using llo_run::Progress;
using llvm::Error;
using llvm::Expected;

struct Box {
  llvm::SmallVector<int64_t, 6> offset, size;  // the valid part of a device's shard in the global array
};
Box shardBox(const isa::SignaturePort& port, int64_t position) {
  Box box;
  for (size_t d = 0; d < port.global_dims.size(); ++d) {
    int64_t index = 0;
    if (d < port.shards.size())
      for (const isa::ShardFactor& f : port.shards[d]) index = index * f.size + position / f.stride % f.size;
    const int64_t local = port.local_dims[d];
    box.offset.push_back(std::min(index * local, port.global_dims[d]));
    box.size.push_back(std::min(local, port.global_dims[d] - box.offset.back()));
  }
  return box;
}

// Copies the box between a global array and a local one of local_dims.
void copyBox(const isa::SignaturePort& port, const Box& box, uint8_t* global, uint8_t* local, bool to_local) {
  const int64_t element = hostBytes(port.element);
  const size_t rank = port.global_dims.size();
  for (int64_t n : box.size)
    if (n == 0) return;
  llvm::SmallVector<int64_t, 6> at(rank, 0);
  for (;;) {
    int64_t g = 0, l = 0;
    for (size_t d = 0; d < rank; ++d) {
      g = g * port.global_dims[d] + box.offset[d] + at[d];
      l = l * port.local_dims[d] + at[d];
    }
    const int64_t run = (rank ? box.size[rank - 1] : 1) * element;
    if (to_local) std::memcpy(local + l * element, global + g * element, run);
    else std::memcpy(global + g * element, local + l * element, run);
    size_t d = rank > 0 ? rank - 1 : 0;
    while (d-- > 0) {
      if (++at[d] < box.size[d]) break;
      at[d] = 0;
    }
    if (d == static_cast<size_t>(-1)) return;
  }
}

int64_t elements(llvm::ArrayRef<int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

void loadArgument(Pod& pod, const llo::Port& port, const HostTensor& arg, int64_t position) {
  const isa::SignaturePort& sig = port.signature;
  std::vector<uint8_t> local(elements(sig.local_dims) * hostBytes(sig.element), 0);
  HostTensor copy = arg;
  copyBox(sig, shardBox(sig, position), copy.bytes.data(), local.data(), true);
  const llo::Buffer& buffer = pod.module->buffers[port.buffer];
  Device& device = *pod.devices[position];
  uint8_t* memory = device.space(buffer.space).at(device.bufferAddress(port.buffer), buffer.bytes);
  isa::packHost(buffer.layout, sig.element, sig.local_dims, local.data(), memory);
}

void readResult(Pod& pod, const llo::Port& port, HostTensor& result, int64_t position) {
  const isa::SignaturePort& sig = port.signature;
  std::vector<uint8_t> local(elements(sig.local_dims) * hostBytes(sig.element), 0);
  const llo::Buffer& buffer = pod.module->buffers[port.buffer];
  Device& device = *pod.devices[position];
  const uint8_t* memory = device.space(buffer.space).at(device.bufferAddress(port.buffer), buffer.bytes);
  isa::unpackHost(buffer.layout, sig.element, sig.local_dims, memory, local.data());
  copyBox(sig, shardBox(sig, position), result.bytes.data(), local.data(), false);
}

Error runPod(Pod& pod) {
  for (;;) {
    bool moved = false, all_done = true;
    for (auto& device : pod.devices) {
      Expected<Progress> p = device->run();
      if (!p) return p.takeError();
      moved |= *p == Progress::kRan;
      all_done &= *p == Progress::kDone;
    }
    if (all_done) return Error::success();
    if (!moved) return fail(Code::kLloHangs, "", "every device that has not ended waits for a semaphore", ExitStatus::kHangs);
  }
}

}  // namespace

Expected<std::vector<HostTensor>> interpret(const llo::Module& module, const target::Chip& chip,
                                            llvm::ArrayRef<HostTensor> args, const InterpretOptions& options) {
  Pod pod{&module, &chip, options, {}};
  for (int64_t d = 0; d < module.devices; ++d) {
    pod.devices.push_back(std::make_unique<Device>(pod, d));
    pod.devices.back()->placeBuffers();
    for (size_t a = 0; a < module.args.size(); ++a) loadArgument(pod, module.args[a], args[a], d);
    pod.devices.back()->startDriver();
  }
  if (Error e = runPod(pod)) return e;
  std::vector<HostTensor> results;
  for (const llo::Port& port : module.results) {
    HostTensor& r = results.emplace_back(port.signature.element, port.signature.global_dims);
    for (int64_t d = module.devices; d-- > 0;) readResult(pod, port, r, d);
  }
  return results;
}

Error interpretKernel(const llo::Kernel& kernel, const target::Chip& chip, std::vector<KernelOperand>& operands,
                      const InterpretOptions& options) {
  Pod pod{nullptr, &chip, options, {}};
  pod.devices.push_back(std::make_unique<Device>(pod, 0));
  Device& device = *pod.devices[0];
  using Kind = llo::KernelParam::Kind;
  auto spaceOf = [](Kind k) { return k == Kind::kHbm ? isa::Space::kHbm : k == Kind::kVmem ? isa::Space::kVmem : isa::Space::kSmem; };
  std::vector<uint32_t> words;
  std::vector<int64_t> address(operands.size(), -1);
  for (size_t i = 0; i < operands.size(); ++i) {
    const Kind kind = kernel.params[i].kind;
    if (kind == Kind::kWord) {
      words.push_back(operands[i].word);
      continue;
    }
    auto& space = device.space(spaceOf(kind));
    address[i] = space.add(operands[i].bytes.size());
    std::memcpy(space.at(address[i], operands[i].bytes.size()), operands[i].bytes.data(), operands[i].bytes.size());
    words.push_back(static_cast<uint32_t>(kind == Kind::kHbm ? address[i] / 512 : address[i]));
    if (kind == Kind::kHbm) words.push_back(0);
  }
  device.enterKernel(kernel, std::move(words), nullptr);
  if (Error e = runPod(pod)) return e;
  for (size_t i = 0; i < operands.size(); ++i)
    if (address[i] >= 0) {
      auto& space = device.space(spaceOf(kernel.params[i].kind));
      std::memcpy(operands[i].bytes.data(), space.at(address[i], operands[i].bytes.size()), operands[i].bytes.size());
    }
  return Error::success();
}

}  // namespace tpu::emulate
