// Finds chips by name or path.
#include "builtin.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "tpu/support/diagnostics.h"
#include "tpu/target/chip.h"

namespace tpu::target {
namespace {

bool isPath(llvm::StringRef name) { return name.contains('/') || name.ends_with(".json"); }

}  // namespace

const char* findBuiltin(llvm::StringRef name) {
  for (int i = 0; i < kNumBuiltinChips; ++i)
    if (name == kBuiltinChips[i].name) return kBuiltinChips[i].json;
  return nullptr;
}

bool isChipName(llvm::StringRef name) {
  return !name.empty() && !llvm::isDigit(name[0]) &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_' || c == '-'; });
}

std::vector<std::string> builtinChips() {
  std::vector<std::string> names;
  for (int i = 0; i < kNumBuiltinChips; ++i) names.push_back(kBuiltinChips[i].name);
  return names;
}

llvm::Expected<Chip> loadChip(llvm::StringRef name) {
  if (const char* json = findBuiltin(name)) return parseChip(json, name);
  if (!isPath(name))
    return fail(Code::kUnknownChip, "",
                "unknown chip '" + name + "'; known are " + llvm::join(builtinChips(), ", ") +
                    ", or a path to a chip file",
                ExitStatus::kUsage);
  auto buffer = llvm::MemoryBuffer::getFile(name, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return fail(Code::kIoError, name, "cannot open the chip file: " + buffer.getError().message(),
                ExitStatus::kIo);
  return parseChip((*buffer)->getBuffer(), name);
}

std::string listTargets() {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "chip  cores  MXUs      bf16 TFLOP/s  HBM GiB  HBM GB/s  VMEM MiB  links x GB/s  largest pod\n";
  for (const std::string& name : builtinChips()) {
    const Chip c = llvm::cantFail(loadChip(name));
    const double rows = 16.0 / (c.timing("matmul_bf16").interval * (c.mxu_side > 128 ? c.mxu_side / 128 : 1));
    const double flops =
        2.0 * c.tensor_cores * c.mxus * c.mxu_side * c.mxu_side * rows * static_cast<double>(c.clock_hz);
    std::string pod;
    for (int64_t d : c.pod) pod += (pod.empty() ? "" : "x") + std::to_string(d);
    const std::string mxus = std::to_string(c.mxus) + " x " + std::to_string(c.mxu_side);
    os << llvm::left_justify(c.name, 6) << llvm::format("%-7d", c.tensor_cores)
       << llvm::left_justify(mxus, 10)
       << llvm::format("%12.1f  %7.2f  %8lld  %8lld  %d x %-8lld  ", flops / 1e12,
                       static_cast<double>(c.hbm_usable_bytes) / (1 << 30),
                       static_cast<long long>(c.hbm_nominal_bytes_per_s / 1000000000),
                       static_cast<long long>(c.vmem_bytes >> 20), c.ici_links,
                       static_cast<long long>(c.ici_nominal_bytes_per_s / 1000000000))
       << pod << "\n";
  }
  return text;
}

}  // namespace tpu::target
