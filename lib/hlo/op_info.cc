// The tables of operations and attribute keys, built from ops.def and attrs.def, with lookups by name.
#include "llvm/ADT/StringMap.h"
#include "tpu/hlo/module.h"

namespace tpu::hlo {
namespace {

// "stablehlo." and "func." are dropped from documents; other dialects stay in front.
constexpr const char* mnemonicOf(const char* name) {
  constexpr const char* kDropped[] = {"stablehlo.", "func."};
  for (const char* prefix : kDropped) {
    const char* n = name;
    const char* p = prefix;
    while (*p && *n == *p) ++n, ++p;
    if (!*p) return n;
  }
  return name;
}

const OpInfo kOps[] = {
#define TPU_HLO_OP(id, name, min, max, results, regions, traits, doc) \
  {Opcode::id, name, mnemonicOf(name), min, max, results, regions, traits, doc},
#include "tpu/hlo/ops.def"
};

struct AttrInfo {
  llvm::StringRef name;
  AttrKind kind;
};
const AttrInfo kAttrs[] = {
#define TPU_HLO_ATTR(id, kind) {#id, AttrKind::kind},
#include "tpu/hlo/attrs.def"
};

llvm::StringMap<Opcode> makeOpcodes() {
  llvm::StringMap<Opcode> map;
  for (const OpInfo& info : kOps) {
    map[info.name] = info.opcode;
    map[info.mnemonic] = info.opcode;
  }
  for (const char* name : {"stablehlo.return", "sdy.return"}) map[name] = Opcode::return_;
  return map;
}

llvm::StringMap<AttrKey> makeAttrKeys() {
  llvm::StringMap<AttrKey> map;
  for (size_t i = 0; i < std::size(kAttrs); ++i) map[kAttrs[i].name] = static_cast<AttrKey>(i);
  return map;
}

const llvm::StringRef kComparisons[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
const llvm::StringRef kCompareTypes[] = {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
const llvm::StringRef kFftTypes[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
const llvm::StringRef kTransposes[] = {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
const llvm::StringRef kDistributions[] = {"UNIFORM", "NORMAL"};
const llvm::StringRef kAlgorithms[] = {"DEFAULT", "THREE_FRY", "PHILOX"};
const llvm::StringRef kDirections[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"};

}  // namespace

const OpInfo& opInfo(Opcode opcode) { return kOps[static_cast<size_t>(opcode)]; }

std::optional<Opcode> findOpcode(llvm::StringRef name) {
  static const llvm::StringMap<Opcode> map = makeOpcodes();
  auto it = map.find(name);
  if (it == map.end()) return std::nullopt;
  return it->second;
}

llvm::StringRef attrName(AttrKey key) { return kAttrs[static_cast<size_t>(key)].name; }
AttrKind attrKind(AttrKey key) { return kAttrs[static_cast<size_t>(key)].kind; }

std::optional<AttrKey> findAttrKey(llvm::StringRef name) {
  static const llvm::StringMap<AttrKey> map = makeAttrKeys();
  auto it = map.find(name);
  if (it == map.end()) return std::nullopt;
  return it->second;
}

llvm::ArrayRef<llvm::StringRef> enumSpellings(AttrKey key) {
  switch (key) {
    case AttrKey::comparison_direction:
      return kComparisons;
    case AttrKey::compare_type:
      return kCompareTypes;
    case AttrKey::fft_type:
      return kFftTypes;
    case AttrKey::transpose_a:
      return kTransposes;
    case AttrKey::rng_distribution:
      return kDistributions;
    case AttrKey::rng_algorithm:
      return kAlgorithms;
    case AttrKey::allowed_direction:
      return kDirections;
    default:
      return {};
  }
}

}  // namespace tpu::hlo
