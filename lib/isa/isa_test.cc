// Every row of the table goes text -> instruction -> word -> instruction -> text; fields at their limits;
// errors at columns.
#include "tpu/isa/isa.h"

#include <gtest/gtest.h>

namespace tpu::isa {
namespace {

// A value of each operand kind; `high` picks the largest.
Operand sample(OperandKind kind, Opcode op, bool high) {
  Operand o;
  auto reg = [&](RegClass cls, int last) { o.kind = Operand::kReg, o.cls = cls, o.reg = high ? last : 1; };
  switch (kind) {
    case OperandKind::Vd:
    case OperandKind::Va:
    case OperandKind::Vb:
    case OperandKind::Vc:
    case OperandKind::Vx:
      reg(RegClass::kVector, 63);
      break;
    case OperandKind::Sd:
    case OperandKind::Sa:
    case OperandKind::Sb:
    case OperandKind::Sc:
      reg(RegClass::kScalar, 31);
      break;
    case OperandKind::Md:
    case OperandKind::Ma:
    case OperandKind::Mb:
      reg(RegClass::kMask, 15);
      break;
    case OperandKind::Pd:
    case OperandKind::Pa:
    case OperandKind::Pb:
      reg(RegClass::kPred, 14);
      break;
    case OperandKind::SI:
      o.imm = high ? INT32_MIN : 7;
      break;
    case OperandKind::S16:
      o.imm = high ? 0xffff : 0;
      break;
    case OperandKind::Mem:
      o.kind = Operand::kMem, o.has_base = true, o.reg = high ? 31 : 0,
      o.imm = memUnit(op) * (high ? -(1 << 17) : 3);
      break;
    case OperandKind::Mxu:
    case OperandKind::Xlu:
      o.kind = Operand::kUnit, o.reg = high ? 7 : 0;
      break;
    case OperandKind::Label:
      o.kind = Operand::kLabel, o.imm = high ? (1 << 24) - 1 : 5;
      break;
    default:
      o.imm = high ? (int64_t{1} << fieldBits(kind)) - 1 : 1;
      break;
  }
  return o;
}

TEST(Isa, EveryInstructionRoundTrips) {
  for (int i = 0; i < static_cast<int>(Opcode::kCount); ++i) {
    for (const bool high : {false, true}) {
      Instruction insn;
      insn.op = static_cast<Opcode>(i);
      const InstructionInfo& row = info(insn.op);
      EXPECT_EQ(findOpcode(row.mnemonic), insn.op);
      EXPECT_FALSE(row.doc.empty());
      insn.num_operands = row.num_operands;
      for (int k = 0; k < row.num_operands; ++k) insn.operands[k] = sample(row.operands[k], insn.op, high);
      if (high) insn.pred = 3, insn.pred_neg = true;
      auto word = encode(insn);
      ASSERT_TRUE(static_cast<bool>(word)) << print(insn);
      auto decoded = decode(*word);
      ASSERT_TRUE(static_cast<bool>(decoded)) << print(insn);
      EXPECT_EQ(*decoded, insn) << print(insn) << " / " << print(*decoded);
      std::vector<std::string> labels;
      auto parsed = parse(print(insn), "t:1", &labels);
      ASSERT_TRUE(static_cast<bool>(parsed)) << print(insn);
      EXPECT_EQ(print(*parsed, labels), print(insn));
      if (labels.empty()) {
        EXPECT_EQ(*parsed, insn);
      }
    }
  }
}

Instruction parsed(const char* text) {
  std::vector<std::string> labels;
  auto insn = parse(text, "f:3", &labels);
  if (insn) return *insn;
  ADD_FAILURE() << llvm::toString(insn.takeError());
  return {};
}

TEST(Isa, TextForms) {
  for (const char* text :
       {"@!p1 vld v4, [s3+4096]", "@%p9 vadd.f32 %v100, %v4, %v77", "vmatmul.bf16 %mxu12, %v3, 0",
        "sadd s3, s3, -64", "vst [s3-512], v1", "vld v1, [1048576]", "sld s1, [s2]", "vpop.xlu v1, xlu1",
        "halt", "vld %v1, [%s400000+512]", "vimm v1, 0x3f800000", "br loop.end", "vxpose.go xlu0, 0, 128",
        "sem.wait s3, s4", "sem.wait 12, 4096"}) {
    std::vector<std::string> labels;
    auto insn = parse(text, "f:3", &labels);
    ASSERT_TRUE(static_cast<bool>(insn)) << text;
    EXPECT_EQ(print(*insn, labels), text);
  }
  EXPECT_EQ(print(parsed("  sadd   s1 ,s2,0x10  ")), "sadd s1, s2, 16");
  EXPECT_EQ(print(parsed("smov s1, 0xffffffff")), "smov s1, -1");
  EXPECT_EQ(print(parsed("vimm v2, -1")), "vimm v2, 0xffffffff");
  EXPECT_EQ(print(parsed("vimm v2, -1.5")), "vimm v2, 0xbfc00000");
  EXPECT_EQ(print(parsed("vimm v2, 1e-3")), "vimm v2, 0x3a83126f");
  EXPECT_EQ(print(parsed("vld v2, [s1+-1024]")), "vld v2, [s1-1024]");
}

std::string error(const char* text) {
  std::vector<std::string> labels;
  auto insn = parse(text, "f:3", &labels);
  if (insn) return "none";
  std::vector<Diagnostic> all = takeDiagnostics(insn.takeError());
  return all[0].loc + ": " + all[0].text;
}

TEST(Isa, ErrorsNameTheColumn) {
  EXPECT_EQ(error("vadd.f33 v1, v2"), "f:3:1: unknown instruction 'vadd.f33'");
  EXPECT_EQ(error("vadd.f32 v1, s2, v3"), "f:3:14: expected a vector register vN");
  EXPECT_EQ(error("vadd.f32 v1, v64, v3"), "f:3:14: vector register v64 does not exist; the last is 63");
  EXPECT_EQ(error("vadd.f32 v1, v2"), "f:3:16: expected ','; vadd.f32 takes 3 operands");
  EXPECT_EQ(error("vld v1, [s3+100]"), "f:3:12: offset 100 is not a multiple of 512");
  EXPECT_EQ(error("vld v1, [s3+134217728]"), "f:3:12: offset 134217728 does not fit its field of 18 bits");
  EXPECT_EQ(error("vrot.sublane v1, v2, 8"), "f:3:22: 8 does not fit 3 unsigned bits");
  EXPECT_EQ(error("pset p15, 1"), "f:3:8: p15 is always true and cannot be written");
  EXPECT_EQ(error("halt now"), "f:3:6: unexpected text after the operands of halt");
  EXPECT_EQ(error("smov s1, 99999999999"), "f:3:10: the number does not fit 32 bits");
  EXPECT_EQ(error("smov s1, 999999999999999999999999"), "f:3:10: expected a number");
  EXPECT_EQ(error(""), "f:3:1: expected an instruction");
}

TEST(Isa, EncodingRefusesWhatDoesNotFit) {
  EXPECT_FALSE(llvm::errorToBool(encode(parsed("vld v1, [134217216]")).takeError()));
  EXPECT_TRUE(llvm::errorToBool(encode(parsed("vadd.f32 %v1, v2, v3")).takeError()));
  EXPECT_TRUE(llvm::errorToBool(encode(parsed("@%p1 halt")).takeError()));
  Instruction insn = parsed("vld v1, [s3+512]");
  insn.operands[1].imm = 513;
  EXPECT_TRUE(llvm::errorToBool(encode(insn).takeError()));
}

TEST(Isa, DecodeRefusesSpareBits) {
  auto word = encode(parsed("halt"));
  ASSERT_TRUE(static_cast<bool>(word));
  EXPECT_TRUE(llvm::errorToBool(decode(*word | 1).takeError()));
  EXPECT_TRUE(llvm::errorToBool(decode(~uint64_t{0}).takeError()));
}

TEST(Isa, FifoEffects) {
  auto entries = [](const char* text, int side) { return fifoEffect(parsed(text), side).entries; };
  EXPECT_EQ(entries("vmatmul.bf16 mxu0, v1, 0", 128), 2);
  EXPECT_EQ(entries("vmatmul.f32 mxu0, v1, 0", 128), 1);
  EXPECT_EQ(entries("vmatmul.s8 mxu0, v1, 0", 128), 4);
  EXPECT_EQ(entries("vmatmul.bf16 mxu0, v1, 0", 256), 0);
  EXPECT_EQ(entries("vmatmul.bf16 mxu0, v1, 1", 256), 4);
  EXPECT_EQ(entries("vmatmul.bf16 mxu0, v1, 1", 64), 2);
  EXPECT_EQ(entries("vmatmul.acc.bf16 mxu0, v1, 1, 8", 256), 0);
  EXPECT_EQ(entries("vxpose.go xlu0, 0, 32", 128), 4);
  EXPECT_EQ(fifoEffect(parsed("vpop.mrf v1, mxu1"), 128).pop, Fifo::kMrf);
  EXPECT_EQ(fifoEffect(parsed("vrcp.f32 v1"), 128).push, Fifo::kEup);
  EXPECT_EQ(unitOf(parsed("vpop.mrf v1, mxu1")), 1);
}

}  // namespace
}  // namespace tpu::isa
