// Assembly text, documents and objects carry the same program; errors stand at line and column.
#include <gtest/gtest.h>

#include <cstring>

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"
#include "tpu/asm/assembly.h"
#include "tpu/asm/check.h"
#include "tpu/asm/describe.h"
#include "tpu/asm/object.h"
#include "tpu/asm/program_document.h"

namespace tpu::assembly {
namespace {

// Uses every directive.
constexpr const char* kFull = R"(
# a program that means little
.target v5e:2x2
.devices 4
.device_order 0, 1, 3, 2
.option "precision", "high est\\ \"q\""
.arg x, bf16[128,256], hbm:4096, shards=[1:2, 2:2], alias=0, loc="model.py:3:1"
.arg "state['w']", f32[], smem:512
.result y, bf16[128,256], hbm:4096, shards=[1:2, 2:2]
.result z, f32[100], hbm:90000, layout=dense
.buffer scratch, vmem:0, bytes=8192, real=8000, loc="model.py:4"
.const smem:1024
.u32 1, -2, 0x10, 4*8
.f32 1.5, -2e-3
.fill 100, 0xffffffff
.base64 "AAECAwQF"
.const smem:2048
.dma src=hbm:5000, dst=vmem:1024, run=512, count1=8, src_stride1=-4096, dst_stride1=512, dst_sem=3
.device_table 2
.row 1, 2
.row 3, 4
.row 5, 6
.row 7, -1
.required flops=100, hbm=200, ici=300
.equ N, 4
.equ acc, v12
.kernel init
start:
  smov s1, {N*2} ; vimm acc, 1.0
  .rept 2, i
  vadd.f32 v{i+1}, acc, v{i} ;
    sadd s{i+2}, s1, {i*512}
  .endr
.endkernel
.kernel "loop kernel"
loop: body:
  ssub s1, s1, 1 ; scmp.gt p0, s1, 1 ; vld v1, [s1+{N*512}]
  @p0 br loop
  nop 4
.endkernel
  br done
  nop 3
  nop
done:
  halt
)";

isa::Program full() { return llvm::cantFail(assemble(kFull, "full.s")); }

TEST(Assembly, BundlesTablesAndMacros) {
  const isa::Program p = full();
  EXPECT_EQ(p.target, "v5e:2x2");
  EXPECT_EQ(p.bundles.size(), 3u + 2 + 4 + 1 + 4 + 1);
  EXPECT_EQ(isa::print(p.bundles[0].insns[0].insn), "smov s1, 8");
  EXPECT_EQ(isa::print(p.bundles[1].insns[0].insn), "sadd s2, s1, 0");
  EXPECT_EQ(isa::print(p.bundles[2].insns[1].insn), "vadd.f32 v2, v12, v1");
  EXPECT_EQ(p.bundles[4].insns[0].insn.operands[0].imm, 3);
  EXPECT_EQ(p.bundles[9].insns[0].insn.operands[0].imm, 14);
  EXPECT_EQ(p.locs[p.bundles[0].insns[0].loc], "full.s:29");
  EXPECT_EQ(p.args[0].local_dims, (llvm::SmallVector<int64_t, 6>{64, 128}));
  EXPECT_EQ(p.ranges[1].name, "loop kernel");
  EXPECT_EQ(p.constants[0].bytes.size(), 16u + 8 + 400 + 6);
  EXPECT_EQ(p.constants[1].bytes.size(), 80u);
  EXPECT_EQ(p.smem_bytes, 2048 + 80);
  EXPECT_EQ(p.options[0].second, "high est\\ \"q\"");
}

TEST(Assembly, AllFormsCarryTheSameProgram) {
  const isa::Program p = full();
  const std::string object = llvm::cantFail(writeObject(p)), text = disassemble(p),
                    document = writeProgramDocument(p);
  for (const std::string& any : {object, text, document}) {
    const isa::Program again = llvm::cantFail(readAnyProgram(any, "again"));
    EXPECT_TRUE(llvm::cantFail(writeObject(again)) == object);
    EXPECT_EQ(disassemble(again), text);
    EXPECT_EQ(writeProgramDocument(again), document);
  }
}

TEST(Assembly, AChipOfTheUserIsSpelledOut) {
  const std::string text =
      "\n.target " TPU_SOURCE_DIR "/testdata/chips/tiny.json:2x1\n  vpop.mrf.half v1, mxu0, 1\n  halt\n";
  const isa::Program p = llvm::cantFail(assemble(text, "t.s"));
  EXPECT_EQ(p.target, "tiny:2x1");
  const std::string again = disassemble(p);
  EXPECT_NE(again.find(".endchip"), std::string::npos);
  EXPECT_TRUE(llvm::cantFail(writeObject(llvm::cantFail(assemble(again, "u.s")))) ==
              llvm::cantFail(writeObject(p)));
}

TEST(Assembly, AChipSpelledAnotherWayInAnObjectIsTheSameChip) {
  isa::Program spaced = full();
  const std::string canonical = spaced.chip_json;
  spaced.chip_json.insert(spaced.chip_json.find("\"source\":") + 8, "  ");
  const isa::Program read = llvm::cantFail(readObject(llvm::cantFail(writeObject(spaced)), "spaced.o"));
  EXPECT_EQ(read.chip_json, canonical);
  EXPECT_EQ(disassemble(read), disassemble(full()));
}

TEST(Assembly, MacrosHaveParametersAndLabelsOfTheirOwn) {
  const char* text = R"(.target v5e
.macro wait sem, amount
again{@}:
  sem.read s1, sem
  scmp.lt p0, s1, {amount*2}
  @p0 br again{@}
  nop 4
.endm
  wait 3, 4+1
  wait s2, 100
  halt
)";
  const isa::Program p = llvm::cantFail(assemble(text, "m.s"));
  EXPECT_EQ(isa::print(p.bundles[1].insns[0].insn), "scmp.lt p0, s1, 10");
  EXPECT_EQ(isa::print(p.bundles[7].insns[0].insn), "sem.read s1, s2");
  EXPECT_EQ(p.bundles[9].insns[0].insn.operands[0].imm, 7);
}

std::string error(llvm::StringRef text) {
  auto p = assemble((".target v5e\n" + text).str(), "f.s");
  if (p) return "none";
  const Diagnostic d = takeDiagnostics(p.takeError())[0];
  return d.loc + ": " + d.text;
}

TEST(Assembly, ErrorsStandAtLineAndColumn) {
  EXPECT_EQ(error("halt ; vadd.f32 v1, s2, v3"), "f.s:2:21: expected a vector register vN");
  EXPECT_EQ(error("smov s1, 1 ; smov s2, 2 ; smov s3, 3"),
            "f.s:2:27: 'smov s3, 3' is one too many: a bundle of v5e has 2 's' slots");
  EXPECT_EQ(error("smov s1, 1 ; smov s1, 2"),
            "f.s:2:14: 'smov s1, 2' writes a register that another instruction of the bundle writes");
  EXPECT_EQ(error("vld v3, [s1] ; vadd.f32 v3, v1, v2"),
            "f.s:2:1: 'vld v3, [s1]' writes a register that another instruction of the bundle writes");
  EXPECT_EQ(error("@p1 smov s1, 1 ; @!p1 smov s1, 2"), "none");
  EXPECT_EQ(error("vmatmul.bf16 mxu4, v1, 0"), "f.s:2:1: 'vmatmul.bf16 mxu4, v1, 0': v5e has 4 matrix units");
  EXPECT_EQ(error("vmatmul.bf16 mxu0, v1, 1"),
            "f.s:2:1: 'vmatmul.bf16 mxu0, v1, 1': a side of 128 has one lane panel");
  EXPECT_EQ(error("vmatpush.bf16 mxu0, v1, 0, 8, 0"),
            "f.s:2:1: 'vmatpush.bf16 mxu0, v1, 0, 8, 0': a side of 128 has 8 row groups of this type");
  EXPECT_EQ(error("vmatmul.f8e4m3fn mxu0, v1, 0"),
            "f.s:2:1: 'vmatmul.f8e4m3fn mxu0, v1, 0' has an operand type that this chip's matrix units do "
            "not take");
  EXPECT_EQ(error("vpop.mrb v1, mxu0, 0"), "f.s:2:1: 'vpop.mrb v1, mxu0, 0' needs addressed accumulators");
  EXPECT_EQ(error("vxpose.go xlu0, 0, 12"),
            "f.s:2:1: 'vxpose.go xlu0, 0, 12': the width is a multiple of 8, and columns end at 128");
  EXPECT_EQ(error("sem.add 256, 1"), "f.s:2:1: 'sem.add 256, 1': v5e has 256 semaphores");
  EXPECT_EQ(error("br nowhere"), "f.s:2:1: label 'nowhere' is not defined");
  EXPECT_EQ(error("a:\nhalt\na:\nhalt"), "f.s:4:1: label 'a' is defined twice");
  EXPECT_EQ(error("halt\nend:"), "f.s: label 'end' is out of order or range");
  EXPECT_EQ(error("%"), "f.s:2:1: expected an instruction");
  EXPECT_EQ(error("vld v1, [s3+100]"), "f.s:2:12: offset 100 is not a multiple of 512");
  EXPECT_EQ(error("vadd.f32 %v1, v2, v3"),
            "f.s:2:1: 'vadd.f32 %v1, v2, v3' names a virtual register or unit");
  EXPECT_EQ(error("halt ; ; halt"), "f.s:2:7: no instruction before ';'");
  EXPECT_EQ(error(".foo 1"), "f.s:2:1: unknown directive '.foo'");
  EXPECT_EQ(error(".rept 3\nhalt"), "f.s:2:1: '.rept' without '.endr'");
  EXPECT_EQ(error("smov s1, {3*}"), "f.s:2:13: expected a number or a name");
  EXPECT_EQ(error("smov s1, {M}"), "f.s:2:11: 'M' is not defined");
  EXPECT_EQ(error(".equ A, 40\n.rept 1\n vadd.f32 v{A*2}, v1, v2\n.endr"),
            "f.s:4:11: vector register v80 does not exist; the last is 63");
  EXPECT_EQ(error(".kernel k\nhalt"), "f.s: kernel 'k' has no '.endkernel'");
  EXPECT_EQ(error(".u32 1"), "f.s:2:1: '.u32' must follow '.const'");
  EXPECT_EQ(error(".arg x, f64[2], hbm:0"), "f.s:2:9: 64-bit types have no device layout");
  EXPECT_EQ(error(".arg x, f32[2], hbx:0"),
            "f.s:2:17: 'hbx' is no memory; known are hbm, vmem, smem, cmem, host");
  EXPECT_EQ(error(".arg x, f32[2], hbm:0, shards=[1:2]\nhalt"),
            "f.s: argument 'x': a shard factor is out of range");
  EXPECT_EQ(error(".dma src=hbm:0"), "f.s:2:1: '.dma' takes at least 3 arguments, not 1");
  EXPECT_EQ(error(".devices 2\nhalt"), "f.s: 2 devices on a target of 1");
  auto p = assemble("halt\n", "f.s");
  EXPECT_EQ(takeDiagnostics(p.takeError())[0].code, Code::kMissingTarget);
  p = assemble(".target v9\nhalt\n", "f.s");
  EXPECT_EQ(takeDiagnostics(p.takeError())[0].loc, "f.s:1:9");
}

// Makes the checksum right again, so that damage reaches the section readers.
void rechecksum(std::string& object) {
  const uint64_t sum = llvm::xxh3_64bits(llvm::StringRef(object).drop_front(28));
  for (int i = 0; i < 8; ++i) object[20 + i] = static_cast<char>(sum >> (8 * i));
}

// Any text is answered with a program or an error.
TEST(Assembly, MutatedTextIsSafe) {
  uint64_t state = 12345;
  auto random = [&](size_t n) {
    return static_cast<size_t>((state = state * 6364136223846793005u + 1442695040888963407u) >> 33) % n;
  };
  const std::string pool = " ,;:.[]{}@!#\"\\+-*/%<>()=\nvspmx0159abz_$";
  for (int round = 0; round < 3000; ++round) {
    std::string text = kFull;
    for (size_t n = 1 + random(4); n > 0; --n) {
      const size_t at = random(text.size());
      switch (random(3)) {
        case 0:
          text[at] = pool[random(pool.size())];
          break;
        case 1:
          text.erase(at, 1 + random(12));
          break;
        default:
          text.insert(at, 1, pool[random(pool.size())]);
          break;
      }
    }
    auto p = assemble(text, "fuzz.s");
    if (!p) {
      EXPECT_FALSE(takeDiagnostics(p.takeError())[0].text.empty());
    }
  }
}

TEST(Object, DamageIsRefused) {
  const std::string good = llvm::cantFail(writeObject(full()));
  for (size_t n = 0; n < good.size(); n += n < 200 ? 1 : 37) {
    auto p = readObject(llvm::StringRef(good).take_front(n), "f.o");
    ASSERT_FALSE(static_cast<bool>(p));
    llvm::consumeError(p.takeError());
  }
  for (size_t i = 0; i < good.size(); i += 1 + i / 100) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    auto p = readObject(bad, "f.o");
    ASSERT_FALSE(static_cast<bool>(p)) << i;
    EXPECT_FALSE(takeDiagnostics(p.takeError())[0].text.empty());
  }
}

// Behind a valid checksum the reader must stand any bytes: never a crash, and what it accepts is a checked
// program.
TEST(Object, DamageBehindTheChecksum) {
  const std::string good = llvm::cantFail(writeObject(full()));
  int accepted = 0;
  for (size_t i = 28; i < good.size(); i += i < 120 ? 1 : 3) {
    if (i > 200 && i < good.size() - 2500 && i % 97) continue;  // mostly the chip's text
    for (const int flip : {0x01, 0xff}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      rechecksum(bad);
      auto p = readObject(bad, "f.o");
      if (p) {
        ++accepted;
        EXPECT_TRUE(static_cast<bool>(writeObject(*p)));
      } else {
        llvm::consumeError(p.takeError());
      }
    }
  }
  EXPECT_GT(accepted, 0);
}

// man/tpu-isa.7 is what tpu-asm --describe=man prints; after a change of the tables write it anew with
// build/bin/tpu-asm --describe=man -o man/tpu-isa.7
TEST(Describe, ManPageIsFresh) {
  auto file = llvm::MemoryBuffer::getFile(TPU_SOURCE_DIR "/man/tpu-isa.7");
  ASSERT_TRUE(static_cast<bool>(file));
  EXPECT_TRUE((*file)->getBuffer() == describeInstructions(DescribeForm::kMan)) << "man/tpu-isa.7 is stale";
}

TEST(Document, ErrorsStandInTheDocument) {
  const std::string good = writeProgramDocument(full());
  auto change = [&](const char* from, const char* to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, std::strlen(from), to);
    auto p = readProgramDocument(text, "d.json");
    if (p) return std::string("none");
    const Diagnostic d = takeDiagnostics(p.takeError())[0];
    const auto [line_loc, column] = llvm::StringRef(d.loc).rsplit(':');
    size_t line = 0, at_column = 0;
    if (line_loc.rsplit(':').second.getAsInteger(10, line) || column.getAsInteger(10, at_column))
      return d.loc + ": " + d.text;
    // The text that the location points at.
    llvm::StringRef rest = text;
    for (size_t i = 1; i < line; ++i) rest = rest.split('\n').second;
    return rest.substr(at_column - 1).take_front(8).str() + "| " + d.text;
  };
  EXPECT_EQ(change("smov s1, 8", "smov v1, 8"), "v1, 8\",\"| expected a scalar register sN");
  EXPECT_EQ(change("br done", "br gone"), "\"br gone| label 'gone' is not defined");
  EXPECT_EQ(change("{\"pc\":3,\"kernel", "{\"pc\":4,\"kernel"),
            "4,\"kerne| bundle row, field \"pc\": the rows are numbered from 0 without gaps; this is row 3");
  EXPECT_EQ(change("\"devices\":4", "\"devices\":4,\"colour\":1"),
            "\"colour\"| bundles document with an unknown field \"colour\"");
  EXPECT_EQ(change("vimm v12, 0x3f800000", "vimm v12, 1\",\"vimm v12, 2"),
            "\"vimm v1| 'vimm v12, 0x2' writes a register that another instruction of the bundle writes");
  EXPECT_EQ(change("sadd s2, s1, 0", "sadd s2, s1, 5"), "none");
  auto p = readProgramDocument("{\"format\":\"tpu-ir\",\"version\":1,\"stage\":\"llo\"}", "d.json");
  EXPECT_EQ(takeDiagnostics(p.takeError())[0].code, Code::kWrongStage);
  for (size_t n = 0; n < good.size() - 2; n += 101)
    EXPECT_TRUE(llvm::errorToBool(readProgramDocument(good.substr(0, n), "d").takeError()));
}

}  // namespace
}  // namespace tpu::assembly
