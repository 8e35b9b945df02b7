// The instruction table as constant data, checked while compiling: rows stand at their opcode, mnemonics are
// unique, and every row's operand fields fit the encoding.
#include <initializer_list>

#include "tpu/isa/dma.h"
#include "tpu/isa/isa.h"

namespace tpu::isa {
namespace {

constexpr int kNumOpcodes = static_cast<int>(Opcode::kCount);

constexpr InstructionInfo row(Opcode op, const char* mnemonic, Slot slot,
                              std::initializer_list<OperandKind> operands, LatencyClass latency,
                              const char* doc) {
  InstructionInfo info{op, mnemonic, slot, latency, {}, static_cast<uint8_t>(operands.size()), doc};
  int i = 0;
  for (OperandKind kind : operands) info.operands[i++] = kind;
  return info;
}

constexpr std::array<InstructionInfo, kNumOpcodes> makeTable() {
  using enum OperandKind;
  return {{
#define OPS(...) \
  { __VA_ARGS__ }
#define TPU_INSN(id, mnemonic, slot, operands, latency, doc) \
  row(Opcode::id, mnemonic, Slot::slot, operands, LatencyClass::latency, doc),
#include "tpu/isa/instructions.def"
#undef OPS
  }};
}
constexpr std::array<InstructionInfo, kNumOpcodes> kTable = makeTable();

constexpr int kOperandBits = 64 - 9 - 5;

constexpr bool rowsFit() {
  for (int i = 0; i < kNumOpcodes; ++i) {
    int bits = 0;
    for (OperandKind kind : kTable[i].operands) bits += fieldBits(kind);
    if (bits > kOperandBits || static_cast<int>(kTable[i].op) != i) return false;
  }
  return true;
}
static_assert(kNumOpcodes <= 512, "the opcode field has 9 bits");
static_assert(rowsFit(), "a row's operand fields exceed the encoding");

// Mnemonic lookup: open addressing over a hash computed at compile time.
constexpr int kHashSize = 1024;
constexpr uint32_t hashName(const char* data, size_t size) {
  uint32_t h = 2166136261u;
  for (size_t i = 0; i < size; ++i) h = (h ^ static_cast<uint8_t>(data[i])) * 16777619u;
  return (h ^ (h >> 15)) % kHashSize;
}

constexpr bool sameName(llvm::StringRef a, llvm::StringRef b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a.data()[i] != b.data()[i]) return false;
  return true;
}

struct NameTable {
  std::array<int16_t, kHashSize> slots{};
  bool unique = true;
};
constexpr NameTable makeNames() {
  NameTable table;
  for (int16_t& slot : table.slots) slot = -1;
  for (int i = 0; i < kNumOpcodes; ++i) {
    uint32_t at = hashName(kTable[i].mnemonic.data(), kTable[i].mnemonic.size());
    for (; table.slots[at] >= 0; at = (at + 1) % kHashSize)
      if (sameName(kTable[table.slots[at]].mnemonic, kTable[i].mnemonic)) table.unique = false;
    table.slots[at] = static_cast<int16_t>(i);
  }
  return table;
}
constexpr NameTable kNames = makeNames();
static_assert(kNames.unique, "two instructions share a mnemonic");

constexpr const char* kLatencyNames[] = {
#define TPU_LATENCY_CLASS(id, name, doc) name,
#include "tpu/target/latency_classes.def"
};
static_assert(std::size(kLatencyNames) == kNumLatencyClasses);

constexpr const char* kSlotNames[] = {
#define TPU_SLOT(id, short_name, name, doc) short_name,
#include "tpu/target/slots.def"
};
static_assert(std::size(kSlotNames) == kNumSlots);

}  // namespace

const InstructionInfo& info(Opcode op) { return kTable[static_cast<size_t>(op)]; }

std::optional<Opcode> findOpcode(llvm::StringRef mnemonic) {
  for (uint32_t at = hashName(mnemonic.data(), mnemonic.size()); kNames.slots[at] >= 0;
       at = (at + 1) % kHashSize)
    if (kTable[kNames.slots[at]].mnemonic == mnemonic) return static_cast<Opcode>(kNames.slots[at]);
  return std::nullopt;
}

llvm::StringRef slotName(Slot slot) { return kSlotNames[static_cast<int>(slot)]; }
llvm::StringRef latencyClassName(LatencyClass cls) { return kLatencyNames[static_cast<int>(cls)]; }

const char* spaceName(Space space) {
  constexpr const char* kNames[] = {"hbm", "vmem", "smem", "cmem", "host"};
  return kNames[static_cast<int>(space)];
}

int memUnit(Opcode op) { return info(op).slot == Slot::kScalar ? 4 : 512; }

}  // namespace tpu::isa
