// Machine instructions in memory, their facts, and their text. The same structure carries physical registers (assembly,
// bundles) and virtual ones (llo): a register operand is virtual when `virt` is set and prints with a '%'.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
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
enum class Slot : uint8_t { kScalar, kValu, kLoad, kStore, kMxu, kXlu, kEup, kPop, kMisc };
inline constexpr int kNumSlots = 9;
llvm::StringRef slotName(Slot slot);  // "s", "v", "ld", "st", "mxu", "xlu", "eup", "pop", "misc"

/// A row names a class; the chip description gives each class its latency (result ready, cycles after issue) and
/// interval (cycles until the same unit takes the next one).
enum class LatencyClass : uint8_t {
  kScalarAlu, kScalarMul, kScalarDiv, kScalarLoad, kScalarStore, kBranch, kDmaIssue, kSemaphore,
  kVectorLoad, kVectorStore, kVectorAlu, kVectorMul, kV2sPush, kV2sPop, kEupPush, kPop,
  kXluReduce, kXluPermute, kXposePush, kXposeGo, kMatPush, kMatPushT, kLatch,
  kMatmul_f32, kMatmul_bf16, kMatmul_s8, kMatmul_u8, kMatmul_f8e4m3fn, kMatmul_f8e5m2,
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

/// Calls f(RegClass, number, is_virtual, is_read, is_write) for every register operand, memory bases and the predicate included.
template <class F>
void forEachRegister(const Instruction& insn, F&& f);

/// Text of one instruction, e.g. "@!p1 vld v4, [s3+4096]"; virtual registers as %v4, labels through `label_name`.
std::string print(const Instruction& insn, llvm::ArrayRef<std::string> label_names = {});
/// Parses one instruction; `labels` grows with new label names in order of appearance. Columns in errors are 1-based
/// offsets into `text` added to `loc` ("file:line").
llvm::Expected<Instruction> parse(llvm::StringRef text, llvm::StringRef loc, std::vector<std::string>* labels);

/// 64-bit encoding: opcode 9 bits, predicate 5 bits, operand fields as the row orders them.
/// fails where a field does not fit or a register is virtual.
llvm::Expected<uint64_t> encode(const Instruction& insn);
llvm::Expected<Instruction> decode(uint64_t word);

inline bool isDef(OperandKind k) {
  return k == OperandKind::Vd || k == OperandKind::Vx || k == OperandKind::Sd || k == OperandKind::Md || k == OperandKind::Pd;
}
inline bool isUse(OperandKind k) { return k != OperandKind::Vd && k != OperandKind::Sd && k != OperandKind::Md && k != OperandKind::Pd; }

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
