// HLO text that is cut off or damaged ends in one message with a place, or in a module; never otherwise.
#include "hlo_text.h"

#include <gtest/gtest.h>

#include "testing.h"
#include "tpu/hlo/analysis.h"
#include "tpu/hlo/infer.h"
#include "tpu/hlo/verify.h"

namespace tpu::frontend {
namespace {

struct IgnoringSink : DiagnosticSink {
  void report(const Diagnostic&) override {}
};

const char kProgram[] = R"(HloModule m, num_partitions=4, input_output_alias={ {}: (0, {}, may-alias) }, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=4]>}}

FileNames
1 "dir/a.py"
FunctionNames
1 "f"
FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=3 end_column=9}
StackFrames
1 {file_location_id=1 parent_frame_id=1}

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(f32[] %a, f32[] %b)
}

%body (p: (s32[], f32[4,6])) -> (s32[], f32[4,6]) {
  %p = (s32[], f32[4,6]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[4,6]{1,0:T(8,128)} get-tuple-element(%p), index=1
  %one = s32[] constant(1)
  %n = s32[] add(%i, %one)
  ROOT %t = (s32[], /*index=1*/f32[4,6]{1,0}) tuple(%n, %x)
}

%cond (q: (s32[], f32[4,6])) -> pred[] {
  %q = (s32[], f32[4,6]{1,0}) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %l = s32[] constant(3)
  ROOT %c = pred[] compare(%j, %l), direction=LT
}

ENTRY %main (x: f32[4,6]) -> f32[4] {
  %x.1 = f32[4,6]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}, frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}, {}]>"}, metadata={op_name="params[\'w\']"}
  %k = f32[2,3]{1,0} constant({ { 1, -2.5, inf }, { nan, 1e-3, 0 } })
  %z = s32[] constant(0)
  %in = (s32[], f32[4,6]{1,0}) tuple(%z, %x.1)
  %w = (s32[], f32[4,6]{1,0}) while(%in), condition=%cond, body=%body, backend_config={"known_trip_count":{"n":"3"}}
  %y = f32[4,6]{1,0} get-tuple-element(%w), index=1
  %ar = f32[4,6]{1,0} all-reduce(%y), channel_id=1, replica_groups=[2,2]<=[2,2]T(1,0), use_global_device_ids=true, to_apply=%sum, metadata={stack_frame_id=1}
  %cv = f32[1,2,3,1]{3,2,1,0} convolution(f32[1,2,3,1]{3,2,1,0} %bc, f32[1,1,1,1]{3,2,1,0} %kn), window={size=1x1}, dim_labels=b01f_01io->b01f
  %zero = f32[] constant(0)
  ROOT %r = f32[4]{0} reduce(%ar, %zero), dimensions={1}, to_apply=%sum
}
)";

// The message, or nothing where a module came out.
std::string outcome(llvm::StringRef text) {
  IgnoringSink sink;
  auto module = parseHloText(text, "m.hlo", sink);
  if (module) {
    llvm::consumeError(hlo::verify(*module));
    return "";
  }
  std::string message;
  for (const Diagnostic& d : takeDiagnostics(module.takeError())) message += d.loc + ": " + d.text;
  EXPECT_FALSE(message.empty());
  return message;
}

std::string whole() {
  std::string text = kProgram;
  const size_t at = text.find("  %cv = ");  // refers to what is not there
  return text.erase(at, text.find('\n', at) + 1 - at);
}

TEST(HloText, NamesPlacesShardingsAndAliasesCome) {
  IgnoringSink sink;
  hlo::Module m = llvm::cantFail(parseHloText(whole(), "m.hlo", sink));
  llvm::cantFail(hlo::verify(m));
  const hlo::Func& entry = m.func(m.entry);
  EXPECT_EQ(m.string(entry.arg_ports[0].name), "params['w']");
  EXPECT_EQ(entry.arg_ports[0].alias, 0);
  ASSERT_TRUE(entry.arg_ports[0].sharding.valid());
  EXPECT_EQ(m.meshes[m.sharding(entry.arg_ports[0].sharding).mesh.v].name, "mesh");
  bool found = false;
  for (uint32_t i = 0; i < m.numOps(); ++i) {
    const hlo::OpId op(i);
    if (m.op(op).opcode != hlo::Opcode::all_reduce) continue;
    found = true;
    EXPECT_EQ(m.loc(m.op(op).loc), "a.py:7:3");
    EXPECT_EQ(m.findAttr(op, hlo::AttrKey::replica_groups)->groups.ids, (std::vector<int64_t>{0, 2, 1, 3}));
  }
  EXPECT_TRUE(found);
}

// Strings of HLO have other escapes than MLIR's; what is no string becomes one.
TEST(HloText, AttributesAreStringsOfMlir) {
  IgnoringSink sink;
  auto module = parseHloText(
      "HloModule m, entry_computation_layout={(f32[2]{0})->f32[2]{0}}\n\nENTRY %e (a: f32[2]) -> f32[2] {\n"
      "  %a = f32[2] parameter(0)\n"
      "  %b = f32[2] custom-call(%a), custom_call_target=\"f\", backend_config=\"it\\'s \\\"x\\\"\\n\\101\"\n"
      "  ROOT %c = f32[2] custom-call(%b), custom_call_target=\"g\", backend_config={\"k\":\"v\"}\n}\n",
      "m.hlo", sink);
  ASSERT_TRUE(static_cast<bool>(module)) << llvm::toString(module.takeError());
  ASSERT_EQ(module->attrs.size(), 1u);
  EXPECT_EQ(module->attrs[0].second, "\"{(f32[2]{0})->f32[2]{0}}\"");
  std::vector<std::string> configs;
  hlo::walk(*module, [&](hlo::OpId op) {
    if (module->has(op, hlo::AttrKey::backend_config))
      configs.push_back(module->getString(op, hlo::AttrKey::backend_config).str());
  });
  EXPECT_EQ(configs, (std::vector<std::string>{"\"it's \\22x\\22\\0AA\"", "\"{\\22k\\22:\\22v\\22}\""}));
  EXPECT_EQ(module->loc(module->func(module->entry).loc), "m.hlo:3:7");
}

TEST(HloText, AValueThatIsNotThereIsNamed) {
  EXPECT_EQ(outcome(kProgram), "m.hlo:42:3: no value 'bc' before this line");
}

TEST(HloText, EveryPrefixEndsWell) {
  const std::string text = whole();
  for (size_t n = 0; n < text.size(); ++n) outcome(llvm::StringRef(text).take_front(n));
}

TEST(HloText, DamageEndsWell) {
  const std::string text = whole();
  uint64_t state = 7;
  const auto next = [&] { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33; };
  const llvm::StringRef marks = "(){}[]<>=,\"%:0x-7 \n*/";
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = text;
    for (int hit = 0; hit < 3; ++hit) {
      const size_t at = next() % damaged.size();
      if (next() % 3 == 0) damaged.erase(at, next() % 20);
      else damaged[at] = marks[next() % marks.size()];
    }
    outcome(damaged);
  }
}

TEST(HloText, DeepTuplesAreRefused) {
  std::string deep = "HloModule m\nENTRY e {\n  p = " + std::string(100000, '(') + "f32[]";
  EXPECT_NE(outcome(deep), "");
}

// What one device holds, and the whole arrays that follow from it; the groups say how many devices there are.
TEST(HloText, APartitionedProgramTakesWholeArrays) {
  const hlo::Module m = accept(R"(HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT add = f32[] add(a, b)
}

ENTRY main_spmd {
  p = f32[2,6]{1,0} parameter(0), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}
  w = f32[3]{0} parameter(1)
  r = f32[2,6]{1,0} all-reduce(p), channel_id=1, replica_groups={{0,2},{1,3}}, use_global_device_ids=true, to_apply=sum
  ROOT t = (f32[2,6]{1,0}, f32[3]{0}) tuple(r, w)
}
)");
  ASSERT_TRUE(m.entry);
  EXPECT_EQ(m.num_partitions, 4);
  const hlo::Func& main = m.func(m.entry);
  EXPECT_EQ(hlo::typeText(m, main.arg_ports[0].global_type), "f32[4,6]");
  EXPECT_EQ(hlo::typeText(m, main.arg_ports[1].global_type), "f32[3]");
  EXPECT_EQ(hlo::typeText(m, main.result_ports[0].global_type), "f32[8,6]");
  EXPECT_EQ(hlo::typeText(m, main.result_ports[1].global_type), "f32[12]");
}

// Groups along the axes of a mesh, whose devices may stand in another order.
TEST(HloText, GroupsAlongAxesOfAMesh) {
  struct Case {
    const char* text;
    int64_t cols;
    std::vector<int64_t> ids;
  };
  for (const Case& c : {Case{"mesh['x'=2,'y'=4] {'y'}", 4, {0, 1, 2, 3, 4, 5, 6, 7}}, Case{"mesh['x'=2,'y'=4] {'x'}", 2, {0, 4, 1, 5, 2, 6, 3, 7}},
                        Case{"mesh['x'=2,'y'=4] {'y','x'}", 8, {0, 4, 1, 5, 2, 6, 3, 7}},
                        Case{"mesh['x'=2,'y'=4] {'y':(2)2}", 2, {0, 1, 2, 3, 4, 5, 6, 7}},
                        Case{"mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)) {'y'}", 4, {0, 2, 4, 6, 1, 3, 5, 7}},
                        Case{"mesh['x'=2,'y'=4], device_ids=([2,2,2]T(0,2,1)) {'y':(2)2}", 2, {0, 2, 1, 3, 4, 6, 5, 7}}}) {
    const hlo::Module m = accept("HloModule m, num_partitions=8\n\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT add = "
                                 "f32[] add(a, b)\n}\n\nENTRY main {\n  p = f32[2] parameter(0)\n  ROOT r = f32[2] all-reduce(p), channel_id=1, "
                                 "replica_groups=" + std::string(c.text) + ", use_global_device_ids=true, to_apply=sum\n}\n");
    const hlo::Attr* groups = nullptr;
    for (uint32_t i = 0; i < m.numOps() && !groups; ++i) groups = m.findAttr(hlo::OpId(i), hlo::AttrKey::replica_groups);
    ASSERT_TRUE(groups) << c.text;
    EXPECT_EQ(groups->groups.cols, c.cols) << c.text;
    EXPECT_EQ(groups->groups.ids, c.ids) << c.text;
  }
}

}  // namespace
}  // namespace tpu::frontend
