// Documents of llo: round trips byte for byte, refusals, and the rules of the stage.
#include "gtest/gtest.h"
#include "tpu/llo/builder.h"
#include "tpu/llo/document.h"
#include "tpu/llo/verify.h"

namespace tpu::llo {
namespace {

using isa::Opcode;

target::Chip v5e() { return llvm::cantFail(target::loadChip("v5e")); }

std::string problem(llvm::Error e) {
  if (!e) return "";
  return takeDiagnostics(std::move(e))[0].text;
}

// One of every kind of statement.
Module everything() {
  Module m;
  m.target = "v5e:2";
  m.chip_json = "{\"name\": \"x\"}";
  m.devices = 2;
  m.device_order = {0, 1};
  m.locs = {"", "a.py:1:2"};
  m.call_locs = {{1, 1}};
  m.options = {{"precision", "high"}};
  m.num_sems = 3;
  m.device_table_words = 1;
  m.device_table = {1, 0};
  m.required_flops = 7;
  for (int i = 0; i < 3; ++i) {
    Buffer b;
    b.name = "b" + std::to_string(i);
    b.dims = {16, 128};
    b.bytes = b.real_bytes = 8192;
    b.role = i == 0 ? Role::kArgument : i == 1 ? Role::kResult : Role::kConstant;
    if (i < 2) b.port = 0;
    if (i == 2) b.data.assign(8192, 5);
    m.buffers.push_back(b);
  }
  Buffer state;
  state.name = "state";
  state.space = isa::Space::kSmem;
  state.element = ElementType::kS32;
  state.bytes = state.real_bytes = 4;
  state.data = {1, 2, 3, 4};
  state.role = Role::kConstant;
  m.buffers.push_back(state);
  Kernel k;
  k.name = "copy.0";
  k.params = {{KernelParam::kHbm, "x"}, {KernelParam::kHbm, "y"}, {KernelParam::kWord, "n"}};
  k.grid = {2};
  k.scratch = {4096};
  for (int i = 0; i < 2; ++i) {
    PipelineBlock b;
    b.name = i ? "y" : "x";
    b.param = i;
    b.direction = i ? Direction::kOut : Direction::kIn;
    b.bytes = 4096;
    b.step = {4096};
    Transfer t;
    t.run = 4096;
    t.run_edge_grid = 0;
    t.run_edge = 512;
    b.transfers = {t};
    k.blocks.push_back(b);
  }
  CodeBuilder b(k.code);
  const V x = b.v(Opcode::vld, {Addr{b.block(0), 0}});
  const P last = b.p(Opcode::scmp_eq, {b.grid(0), 1});
  const S n = b.param(4);
  Stmt hook;
  hook.kind = StmtKind::kHook;
  k.code.body.push_back(hook);
  b.loop(n, [&](S i) { b.emit(Opcode::vst, {Addr{b.scratch(0), 0}, x}); });
  b.ifElse(
      last,
      [&] {
        b.emit(Opcode::vst, {Addr{b.block(1), 0}, x});
      },
      [&] {
        b.emit(Opcode::vst, {Addr{b.block(1), 0}, x});
      });
  m.kernels.push_back(std::move(k));
  Companion c;
  c.name = "ring";
  CodeBuilder step(c.step);
  c.done = step.p(Opcode::pset, {1}).id;
  m.companions.push_back(std::move(c));
  CodeBuilder d(m.driver);
  m.driver.op_locs = {1};
  const S row = d.pseudo(PseudoKind::kHbmRow, 0);
  const S device = d.pseudo(PseudoKind::kDevice, 0);
  Dma copy;
  copy.src.index = 0;
  copy.dst.index = 1;
  copy.dst.offset = 512;
  copy.dst.regs = {row.id};
  copy.run = 512;
  copy.dims[0] = {2, 512, 1024};
  copy.remote = true;
  copy.device = {true, device.id, 0};
  copy.src_sem = 0;
  copy.dst_sem = 1;
  copy.dst_sem_plus = device.id;
  d.dma(copy);
  d.semWait(0, {false, 0, 1024});
  d.semAdd(2, {false, 0, 1});
  d.semSignal({true, device.id, 0}, 2, {false, 0, 1});
  const S seen = d.semRead(2);
  m.driver.body.back().sem_plus = device.id;
  d.whileLoop([&] { return d.p(Opcode::scmp_lt, {seen, 0}); }, [&] { d.imm(3); });
  d.ifThen(d.p(Opcode::scmp_eq, {seen, 1}), [&] { d.imm(1); });
  d.call(0, {{true, 0, {}}, {true, 1, {true, row.id, 0}}, {false, -1, {false, 0, 2}}}, 0);
  m.driver.body.back().companions = {0};
  Stmt drain;
  drain.kind = StmtKind::kDrain;
  m.driver.body.push_back(drain);
  Port arg;
  arg.name = "x";
  arg.buffer = 0;
  arg.signature.name = "x";
  arg.signature.global_dims = {32, 128};
  arg.signature.local_dims = {16, 128};
  arg.signature.shards = {{{1, 2}}, {}};
  arg.signature.alias = 0;
  arg.signature.loc = "a.py:1:2";
  m.args.push_back(arg);
  arg.buffer = 1;
  arg.signature.alias = -1;
  m.results.push_back(arg);
  return m;
}

TEST(LloDocument, RoundTripKeepsEveryByte) {
  const Module m = everything();
  EXPECT_EQ(problem(verify(m, v5e())), "");
  const std::string text = writeDocument(m);
  llvm::Expected<Module> again = readDocument(text, "m.json");
  ASSERT_TRUE(static_cast<bool>(again)) << problem(again.takeError());
  EXPECT_EQ(writeDocument(*again), text);
  EXPECT_EQ(again->kernels[0].code.body.size(), m.kernels[0].code.body.size());
  EXPECT_EQ(again->buffers[2].data, m.buffers[2].data);
  std::string a, b;
  llvm::raw_string_ostream os_a(a), os_b(b);
  printText(m, os_a);
  printText(*again, os_b);
  EXPECT_EQ(os_a.str(), os_b.str());
}

TEST(LloDocument, DamageIsRefused) {
  const std::string text = writeDocument(everything());
  auto refused = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    llvm::Expected<Module> m = readDocument(changed, "m.json");
    EXPECT_FALSE(static_cast<bool>(m)) << from << " -> " << to;
    return m ? std::string() : problem(m.takeError());
  };
  EXPECT_NE(refused("\"sems\":3", "\"sems\":3,\"more\":1").find("more"), std::string::npos);
  EXPECT_NE(refused("\"insn\":\"vst [%s", "\"insn\":\"vsst [%s"), "");
  EXPECT_NE(refused("\"fn\":\"kernel 0\",\"id\":1", "\"fn\":\"kernel 1\",\"id\":1"), "");
  EXPECT_NE(refused("\"parent\":", "\"parent\":1000"), "");
  EXPECT_NE(refused("\"do\":\"grid\"", "\"do\":\"grad\""), "");
  for (size_t cut = 1; cut < text.size(); cut += 97)
    EXPECT_TRUE(static_cast<bool>(readDocument(text.substr(0, cut), "m.json").takeError()));
}

TEST(LloVerify, NamesTheViolation) {
  auto of = [&](llvm::function_ref<void(CodeBuilder&)> write) {
    Module m = everything();
    Kernel& k = m.kernels[0];
    CodeBuilder b(k.code);
    write(b);
    return problem(verify(m, v5e()));
  };
  EXPECT_NE(of([](CodeBuilder& b) { b.v(Opcode::vmov, {b.newV()}); }).find("read before"), std::string::npos);
  EXPECT_NE(of([](CodeBuilder& b) { b.emit(Opcode::vrcp, {b.vimm(0)}); }).find("leaves 1"),
            std::string::npos);
  EXPECT_NE(of([](CodeBuilder& b) { b.v(Opcode::vpop_eup, {}); }).find("nothing pushed"), std::string::npos);
  EXPECT_NE(of([](CodeBuilder& b) { b.v(Opcode::vld, {Addr{{}, 0}}); }).find("absolute"), std::string::npos);
  EXPECT_NE(of([](CodeBuilder& b) { b.block(2); }).find("does not exist"), std::string::npos);
  EXPECT_NE(of([](CodeBuilder& b) {
              b.loop(b.imm(3), [&](S i) { b.emit(Opcode::sadd, {i, i, 1}); });
            }).find("counter"),
            std::string::npos);
  EXPECT_NE(of([](CodeBuilder& b) {
              V x;
              b.loop(b.imm(3), [&](S) { x = b.vimm(1); });
              b.v(Opcode::vmov, {x});
            }).find("read before"),
            std::string::npos);
  // A loop with constant trips may fill a FIFO for another to empty.
  auto fillAndEmpty = [&](int64_t fill, int64_t empty) {
    return of([=](CodeBuilder& b) {
      b.loop(fill, [&](S) { b.emit(Opcode::vrcp, {b.vimm(0)}); });
      b.loop(empty, [&](S) { b.v(Opcode::vpop_eup, {}); });
    });
  };
  EXPECT_EQ(fillAndEmpty(3, 3), "");
  EXPECT_NE(fillAndEmpty(3, 2).find("leaves 1"), std::string::npos);
  EXPECT_NE(fillAndEmpty(2, 3).find("nothing pushed"), std::string::npos);
  EXPECT_NE(of([](CodeBuilder& b) {
              Stmt drain;
              drain.kind = StmtKind::kDrain;
              b.code().body.push_back(drain);
            }).find("only the driver drains"),
            std::string::npos);
  EXPECT_EQ(of([](CodeBuilder& b) {
              V x;
              b.loop(3, [&](S) { x = b.vimm(1); });
              b.v(Opcode::vmov, {x});
            }),
            "");
}

}  // namespace
}  // namespace tpu::llo
