// Small programs for tests: text of bundles (one per line, instructions separated by ';', labels with ':'),
// and descriptors.
#pragma once
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "llvm/ADT/StringExtras.h"
#include "tpu/asm/assembly.h"
#include "tpu/emulate/emulate.h"
#include "tpu/isa/dma.h"
#include "tpu/target/chip.h"

namespace tpu::emulate::testing {

inline isa::Program programFrom(const std::string& text) {
  auto program = assembly::assemble(text, "test");
  EXPECT_TRUE(static_cast<bool>(program)) << llvm::toString(program.takeError());
  return program ? std::move(*program) : isa::Program();
}
inline isa::Program programOf(llvm::StringRef target, const std::string& text, int64_t devices = 1) {
  return programFrom(
      (".target " + target + "\n.devices " + llvm::Twine(devices) + "\n.autoloc off\n" + text).str());
}
/// A chip that differs from v5e in some fields, given as the inside of a JSON object.
inline target::Chip chipWith(const std::string& fields) {
  auto chip = target::parseChip(
      "{\"format\":\"tpu-chip\",\"version\":1,\"name\":\"mine\",\"base\":\"v5e\"" + fields + "}",
      "mine.json");
  EXPECT_TRUE(static_cast<bool>(chip)) << fields << ": " << llvm::toString(chip.takeError());
  return chip ? std::move(*chip) : target::Chip();
}
inline isa::Program programFor(const std::string& fields, llvm::StringRef box, const std::string& text,
                               int64_t devices = 1) {
  return programFrom((".chip\n" + chipWith(fields).json + "\n.endchip\n.target mine:" + box + "\n.devices " +
                      llvm::Twine(devices) + "\n.autoloc off\n" + text)
                         .str());
}

/// A row of a table of transfers: what stands in the SMEM descriptor.
struct Copy {
  isa::Space from = isa::Space::kHbm, to = isa::Space::kVmem;
  int64_t source = 0, dest = 0;  // bytes
  uint32_t source_sem = isa::kNoSemaphore, dest_sem = 0;
  uint32_t device = isa::kThisDevice;
  int64_t run = 512;
  int64_t n[3] = {1, 1, 1}, from_stride[3] = {0, 0, 0}, to_stride[3] = {0, 0, 0};
};
/// Puts the descriptor at SMEM address `at` of every device.
inline void addDescriptor(isa::Program& program, int64_t at, const Copy& c) {
  uint32_t w[isa::kDmaWords] = {};
  w[isa::kDmaSpaces] = static_cast<uint32_t>(c.from) | static_cast<uint32_t>(c.to) << 8;
  w[isa::kDmaSems] = (c.source_sem & 0xffff) | c.dest_sem << 16;
  w[isa::kDmaDevice] = c.device;
  w[isa::kDmaSrcBase] = static_cast<uint32_t>(c.source / 512);
  w[isa::kDmaSrcOffset] = static_cast<uint32_t>(c.source % 512);
  w[isa::kDmaDstBase] = static_cast<uint32_t>(c.dest / 512);
  w[isa::kDmaDstOffset] = static_cast<uint32_t>(c.dest % 512);
  w[isa::kDmaRun] = static_cast<uint32_t>(c.run);
  for (int i = 0; i < 3; ++i) {
    w[isa::kDmaCount1 + 3 * i] = static_cast<uint32_t>(c.n[i]);
    w[isa::kDmaSrcStride1 + 3 * i] = static_cast<uint32_t>(c.from_stride[i]);
    w[isa::kDmaDstStride1 + 3 * i] = static_cast<uint32_t>(c.to_stride[i]);
  }
  isa::Constant constant;
  constant.space = isa::Space::kSmem;
  constant.address = at;
  constant.bytes.assign(reinterpret_cast<const uint8_t*>(w), reinterpret_cast<const uint8_t*>(w) + sizeof w);
  program.constants.push_back(std::move(constant));
}

/// An argument or result of one device in HBM.
inline isa::SignaturePort port(const std::string& name, ElementType type, std::vector<int64_t> dims,
                               int64_t address) {
  isa::SignaturePort p;
  p.name = name;
  p.element = type;
  p.global_dims.assign(dims.begin(), dims.end());
  p.local_dims = p.global_dims;
  p.shards.resize(dims.size());
  p.layout = isa::defaultLayout(type, dims);
  p.address = address;
  return p;
}

inline HostTensor filled(ElementType type, std::vector<int64_t> dims, float (*f)(int64_t)) {
  HostTensor t(type, dims);
  for (int64_t i = 0; i < t.numElements(); ++i) t.data<float>()[i] = f(i);
  return t;
}

inline RunResult mustRun(const isa::Program& program, llvm::ArrayRef<HostTensor> args = {},
                         const RunOptions& options = {}) {
  auto result = run(program, args, options);
  EXPECT_TRUE(static_cast<bool>(result)) << (result ? "" : llvm::toString(result.takeError()));
  if (!result) return {};
  return std::move(*result);
}
/// The text of the failure of a run, with its exit status.
inline std::string failure(const isa::Program& program, llvm::ArrayRef<HostTensor> args = {},
                           const RunOptions& options = {}) {
  auto result = run(program, args, options);
  EXPECT_FALSE(static_cast<bool>(result)) << "the run was expected to fail";
  if (result) return "";
  const auto all = takeDiagnostics(result.takeError());
  return std::to_string(static_cast<int>(all.front().exit)) + " TP0" +
         std::to_string(static_cast<int>(all.front().code)) + " " + all.front().text;
}
inline int64_t cycles(const isa::Program& program, const RunOptions& options = {}) {
  return mustRun(program, {}, options).stats.cycles;
}

}  // namespace tpu::emulate::testing
