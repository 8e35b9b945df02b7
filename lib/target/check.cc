#include "check.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"
#include "tpu/support/diagnostics.h"

namespace tpu::target {
namespace {

// Rows of eight that one vmatmul of this type streams; 0 for an unknown type.
int rowGroups(llvm::StringRef type) {
  return llvm::StringSwitch<int>(type)
      .Case("f32", 1)
      .Case("bf16", 2)
      .Cases("s8", "u8", "f8e4m3fn", "f8e5m2", 4)
      .Default(0);
}

class Checker {
 public:
  Checker(const Chip& chip, llvm::function_ref<std::string(const std::string&)> locOf)
      : c_(chip), locOf_(locOf) {}

  llvm::Error run() {
    if (llvm::Error error = checkUnits()) return error;
    if (llvm::Error error = checkMatrixUnits()) return error;
    if (llvm::Error error = checkMemories()) return error;
    return checkLinks();
  }

 private:
  llvm::Error bad(const std::string& field, const llvm::Twine& text) const {
    return fail(Code::kBadChipValue, locOf_(field), "'" + field + "' " + text);
  }

  llvm::Error checkUnits() const {
    if (c_.megacore && c_.tensor_cores != 2) return bad("megacore", "needs two tensor cores");
    if (c_.imem_block_bundles > c_.imem_bundles)
      return bad("imem_block_bundles", "exceeds the instruction memory");
    int slots = 0;
    for (int n : c_.slots) slots += n;
    if (slots > 32) return bad("slots.scalar", "and the other slots are more than 32 together");
    if (c_.trf_depth < 4) return bad("trf_depth", "must hold a transpose of 32 columns, 4 entries");
    return llvm::Error::success();
  }

  llvm::Error checkMatrixUnits() const {
    if (c_.mxu_side != 64 && c_.mxu_side != 128 && c_.mxu_side != 256)
      return bad("mxu_side", "must be 64, 128 or 256");
    if (c_.mxu_types.empty()) return bad("mxu_types", "must name a type");
    int entries = 0;
    for (const std::string& type : c_.mxu_types) {
      if (!rowGroups(type))
        return bad("mxu_types", "has the unknown type '" + llvm::Twine(type) +
                                    "'; known are f32, bf16, s8, u8, f8e4m3fn, f8e5m2");
      entries = std::max(entries, rowGroups(type) * (c_.mxu_side > 128 ? c_.mxu_side / 128 : 1));
    }
    const char* own = c_.mxu_addressed ? "mrb_entries" : "mrf_depth";
    const char* other = c_.mxu_addressed ? "mrf_depth" : "mrb_entries";
    if ((c_.mxu_addressed ? c_.mrb_entries : c_.mrf_depth) < entries)
      return bad(own, "must hold the " + llvm::Twine(entries) + " entries of one vmatmul");
    if ((c_.mxu_addressed ? c_.mrf_depth : c_.mrb_entries) != 0)
      return bad(other, "must be 0 on this kind of matrix unit");
    return llvm::Error::success();
  }

  llvm::Error checkMemories() const {
    if (c_.vmem_bytes % 4096) return bad("vmem_bytes", "must be a multiple of 4096");
    if (c_.smem_bytes % 512) return bad("smem_bytes", "must be a multiple of 512");
    if (c_.hbm_bytes % 4096 || c_.hbm_usable_bytes % 4096)
      return bad("hbm_bytes", "must be a multiple of 4096");
    if (c_.hbm_usable_bytes > c_.hbm_bytes) return bad("hbm_usable_bytes", "exceeds the HBM");
    if (c_.hbm_sustained_bytes_per_s > c_.hbm_nominal_bytes_per_s)
      return bad("hbm_sustained_bytes_per_s", "exceeds the nominal rate");
    if (!llvm::isPowerOf2_64(static_cast<uint64_t>(c_.dma_granule_bytes)))
      return bad("dma_granule_bytes", "must be a power of two");
    return llvm::Error::success();
  }

  llvm::Error checkLinks() const {
    if (c_.ici_links != 2 * c_.ici_dims) return bad("ici_links", "must be two per dimension");
    if (c_.ici_sustained_bytes_per_s > c_.ici_nominal_bytes_per_s)
      return bad("ici_sustained_bytes_per_s", "exceeds the nominal rate");
    if (c_.wrap_rule != "length16" && c_.wrap_rule != "cubes4" && c_.wrap_rule != "full" &&
        c_.wrap_rule != "none")
      return bad("wrap_rule", "must be length16, cubes4, full or none");
    if (static_cast<int>(c_.pod.size()) != c_.ici_dims) return bad("pod", "must have a length per dimension");
    for (int64_t d : c_.pod)
      if (d < 1 || d > 1024) return bad("pod", "must have lengths from 1 to 1024");
    if (c_.ici_packet_bytes % c_.dma_granule_bytes)
      return bad("ici_packet_bytes", "must be a multiple of the granule");
    return llvm::Error::success();
  }

  const Chip& c_;
  llvm::function_ref<std::string(const std::string&)> locOf_;
};

}  // namespace

llvm::Error checkChip(const Chip& chip, llvm::function_ref<std::string(const std::string&)> locOf) {
  return Checker(chip, locOf).run();
}

}  // namespace tpu::target
