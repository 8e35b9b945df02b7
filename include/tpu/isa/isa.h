// Machine instructions in memory, their facts, and their text. The same structure carries physical registers (assembly,
// bundles) and virtual ones (llo): a register operand is virtual when `virt` is set and prints with a '%'.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "tpu/support/diagnostics.h"

namespace tpu::isa {

enum class Opcode : uint16_t {
#define TPU_INSN(id, ...) id,
#include "tpu/isa/instructions.def"
  kCount
};

/// Kinds of slots of a bundle; the chip says how many of each a bundle has (Chip::slots), in this order.
enum class Slot : uint8_t {
#define TPU_SLOT(id, short_name, name, doc) id,
#include "tpu/target/slots.def"
};
inline constexpr int kNumSlots = 9;
llvm::StringRef slotName(Slot slot);  // "s", "v", "ld", "st", "mxu", "xlu", "eup", "pop", "misc"

/// A row names a class; the chip description gives each class its latency (result ready, cycles after issue) and
/// interval (cycles until the same unit takes the next one).
enum class LatencyClass : uint8_t {
#define TPU_LATENCY_CLASS(id, name, doc) id,
#include "tpu/target/latency_classes.def"
};
inline constexpr int kNumLatencyClasses = 29;
llvm::StringRef latencyClassName(LatencyClass cls);  // "scalar_alu", "matmul_bf16" ...

enum class OperandKind : uint8_t {
  kNone, Vd, Va, Vb, Vc, Vx, Sd, Sa, Sb, Sc, SI, S16, Md, Ma, Mb, Pd, Pa, Pb, Mem, Mxu, Xlu,
  I1, I2, I3, I4, I7, I8, U32, Label,
};
inline constexpr int kMaxOperands = 5;

enum class RegClass : uint8_t { kScalar, kVector, kMask, kPred };

struct Operand {
  enum Kind : uint8_t { kReg, kImm, kMem, kUnit, kLabel } kind = kImm;
  RegClass cls = RegClass::kScalar;  // kReg
  bool virt = false;                 // kReg, kMem base, kUnit: virtual
  bool has_base = false;             // kMem: a base register is present
  int32_t reg = 0;                   // register number, memory base register, unit number
  int64_t imm = 0;                   // immediate, memory offset in bytes, or label id
  friend bool operator==(const Operand&, const Operand&) = default;
};

/// p15 is always true and cannot be written: `pred == 15, !pred_neg` means unpredicated.
inline constexpr int kAlways = 15;

struct Instruction {
  Opcode op = Opcode::smov;
  int32_t pred = kAlways;
  bool pred_virt = false;
  bool pred_neg = false;
  uint8_t num_operands = 0;
  std::array<Operand, kMaxOperands> operands{};
  llvm::ArrayRef<Operand> ops() const { return {operands.data(), num_operands}; }
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

struct InstructionInfo {
  Opcode op;
  llvm::StringRef mnemonic;
  Slot slot;
  LatencyClass latency;
  std::array<OperandKind, kMaxOperands> operands;
  uint8_t num_operands;
  llvm::StringRef doc;
};
const InstructionInfo& info(Opcode op);
std::optional<Opcode> findOpcode(llvm::StringRef mnemonic);

/// FIFOs and ordered resources an instruction touches, for scheduling and checking.
enum class Fifo : uint8_t { kNone, kV2s, kEup, kXlu, kTrf, kMrf };
struct FifoEffect {
  Fifo push = Fifo::kNone, pop = Fifo::kNone;
  int entries = 0;  // entries pushed by this instruction (depends on chip side and operands; filled by fifoEffect)
};
/// The FIFO an instruction pushes to or pops from (a pop takes one entry; vpop.mrb and vmatmul.acc touch no FIFO). `unit`
/// operands say which unit's FIFO. A vmatmul pushes on its last lane panel only: for every 8 rows one entry, times the
/// lane panels of the columns (2 on a side of 256); on a side of 64 every vmatmul pushes one entry of half width per 8 rows.
FifoEffect fifoEffect(const Instruction& insn, int mxu_side);
/// Rows of LHS or weights that one register carries for an MXU operand type: 8 (f32), 16 (bf16), 32 (8-bit); 0 for
/// instructions other than vmatpush*, vmatmul*.
int mxuRows(Opcode op);
/// Lane panels of K (and of the columns) of an MXU: 1 for a side up to 128, 2 for 256.
inline int mxuPanels(int mxu_side) { return mxu_side > 128 ? mxu_side / 128 : 1; }
/// Index of the unit an instruction names (mxu, xlu), or -1.
int unitOf(const Instruction& insn);

/// Calls f(RegClass, number, is_virtual, is_read, is_write) for every register operand, memory bases and the predicate included.
template <class F>
void forEachRegister(const Instruction& insn, F&& f);

/// Text of one instruction, e.g. "@!p1 vld v4, [s3+4096]"; virtual registers as %v4, labels through `label_name`.
std::string print(const Instruction& insn, llvm::ArrayRef<std::string> label_names = {});
/// The same, appended to `out`.
void printTo(const Instruction& insn, llvm::ArrayRef<std::string> label_names, std::string& out);
/// Parses one instruction; `labels` grows with new label names in order of appearance. Columns in errors are 1-based
/// offsets into `text` added to `loc` ("file:line").
llvm::Expected<Instruction> parse(llvm::StringRef text, llvm::StringRef loc, std::vector<std::string>* labels);
/// The same; `locate` turns an offset into `text` into the location of an error.
llvm::Expected<Instruction> parse(llvm::StringRef text, llvm::function_ref<std::string(size_t)> locate,
                                  std::vector<std::string>* labels);

/// 64-bit encoding: opcode 9 bits, predicate 5 bits (inverted, number), then the operand fields as the row orders them, from the
/// high bits down. Fields: V 6, S 5, M 4, P 4, SI 1 + 32, S16 1 + 16 (the first bit is set for a register), unit 3, immediates by
/// their name, Label 24, Mem 1 + 5 + 18: base present, base, offset in units of 512 bytes (4 for sld, sst); signed with a base,
/// unsigned without. Fails where a field does not fit or a register is virtual.
llvm::Expected<uint64_t> encode(const Instruction& insn);
llvm::Expected<Instruction> decode(uint64_t word);
/// Bytes per unit of a Mem offset of this instruction: 4 (sld, sst) or 512.
int memUnit(Opcode op);

inline bool isDef(OperandKind k) {
  return k == OperandKind::Vd || k == OperandKind::Vx || k == OperandKind::Sd || k == OperandKind::Md || k == OperandKind::Pd;
}
inline bool isUse(OperandKind k) { return k != OperandKind::Vd && k != OperandKind::Sd && k != OperandKind::Md && k != OperandKind::Pd; }

/// Bits of an operand's field in the encoding.
constexpr int fieldBits(OperandKind kind) {
  switch (kind) {
    case OperandKind::kNone: return 0;
    case OperandKind::Vd: case OperandKind::Va: case OperandKind::Vb: case OperandKind::Vc: case OperandKind::Vx: return 6;
    case OperandKind::Sd: case OperandKind::Sa: case OperandKind::Sb: case OperandKind::Sc: return 5;
    case OperandKind::SI: return 33;
    case OperandKind::S16: return 17;
    case OperandKind::Md: case OperandKind::Ma: case OperandKind::Mb: return 4;
    case OperandKind::Pd: case OperandKind::Pa: case OperandKind::Pb: return 4;
    case OperandKind::Mem: return 24;
    case OperandKind::Mxu: case OperandKind::Xlu: return 3;
    case OperandKind::I1: return 1;
    case OperandKind::I2: return 2;
    case OperandKind::I3: return 3;
    case OperandKind::I4: return 4;
    case OperandKind::I7: return 7;
    case OperandKind::I8: return 8;
    case OperandKind::U32: return 32;
    case OperandKind::Label: return 24;
  }
  return 0;
}

template <class F>
void forEachRegister(const Instruction& insn, F&& f) {
  const InstructionInfo& row = info(insn.op);
  for (int i = 0; i < insn.num_operands; ++i) {
    const Operand& o = insn.operands[i];
    if (o.kind == Operand::kReg) f(o.cls, o.reg, o.virt, isUse(row.operands[i]), isDef(row.operands[i]));
    if (o.kind == Operand::kMem && o.has_base) f(RegClass::kScalar, o.reg, o.virt, true, false);
  }
  if (insn.pred != kAlways || insn.pred_virt) f(RegClass::kPred, insn.pred, insn.pred_virt, true, false);
}

}  // namespace tpu::isa
