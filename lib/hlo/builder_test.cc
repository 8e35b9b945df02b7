// What the builder makes verifies and has the inferred types.
#include "testing.h"
#include "tpu/hlo/literal.h"

namespace tpu::hlo {
namespace {

TEST(Builder, InfersResultTypes) {
  Main f;
  Builder& b = f.b;
  ValueId x = f.arg(f.f32({8, 16})), y = f.arg(f.f32({16, 4})), i = f.arg(f.s32({}));
  auto type = [&](ValueId v) { return typeText(f.m, b.type(v)); };
  EXPECT_EQ(type(b.dotGeneral(x, y, {{}, {}, {1}, {0}}, ElementType::kF32)), "f32[8,4]");
  EXPECT_EQ(type(b.transpose(x, {1, 0})), "f32[16,8]");
  EXPECT_EQ(b.transpose(x, {0, 1}), x);
  EXPECT_EQ(type(b.slice(x, {1, 0}, {8, 16}, {2, 3})), "f32[4,6]");
  EXPECT_EQ(type(b.sliceDim(x, 1, 4, 8)), "f32[8,4]");
  EXPECT_EQ(type(b.pad(x, b.scalar(ElementType::kF32, 0), {1, 0}, {1, -1}, {0, 1})), "f32[10,30]");
  EXPECT_EQ(type(b.concatenate({x, x, x}, 0)), "f32[24,16]");
  EXPECT_EQ(b.concatenate({x}, 0), x);
  EXPECT_EQ(type(b.dynamicSlice(x, {i, i}, {2, 16})), "f32[2,16]");
  EXPECT_EQ(type(b.dynamicUpdateSlice(x, b.splat(f.f32({1, 1}), 2), {i, i})), "f32[8,16]");
  EXPECT_EQ(type(b.compare(Comparison::kLt, x, x)), "pred[8,16]");
  EXPECT_EQ(type(b.convert(x, ElementType::kBF16)), "bf16[8,16]");
  EXPECT_EQ(b.convert(x, ElementType::kF32), x);
  EXPECT_EQ(type(b.reshape(x, {128})), "f32[128]");
  EXPECT_EQ(type(b.broadcastScalar(i, {3, 3})), "s32[3,3]");
  EXPECT_EQ(type(b.reverse(x, {1})), "f32[8,16]");
  EXPECT_EQ(type(b.iota(f.s32({4}), 0)), "s32[4]");
  EXPECT_EQ(type(b.select(b.compare(Comparison::kEq, i, i), x, x)), "f32[8,16]");
  EXPECT_EQ(type(b.clamp(b.zeros(f.f32({})), x, b.ones(f.f32({})))), "f32[8,16]");
  EXPECT_EQ(type(b.reduce(x, b.scalar(ElementType::kF32, 0), {0}, Opcode::add)), "f32[16]");
  EXPECT_EQ(type(b.partitionId()), "u32[]");
  f.finish({});
  EXPECT_EQ(f.check(), "");
}

TEST(Builder, MakesCollectivesOverAxes) {
  Main f;
  Builder& b = f.b;
  f.m.stage = Stage::kSpmd;
  f.m.num_partitions = 8;
  Mesh mesh;
  mesh.name = "mesh";
  mesh.axes = {{"x", 4}, {"y", 2}};
  f.m.meshes.push_back(mesh);
  AxisRef x{0, 1, 4}, y{1, 1, 2};
  ValueId v = f.arg(f.f32({8, 16}));
  auto type = [&](ValueId value) { return typeText(f.m, b.type(value)); };
  EXPECT_EQ(type(b.allReduce(v, MeshId(0), {x, y}, Opcode::add)), "f32[8,16]");
  EXPECT_EQ(type(b.allGather(v, MeshId(0), {x}, 1)), "f32[8,64]");
  EXPECT_EQ(type(b.reduceScatter(v, MeshId(0), {x, y}, 0, Opcode::add)), "f32[1,16]");
  EXPECT_EQ(type(b.allToAll(v, MeshId(0), {x}, 1, 0)), "f32[32,4]");
  EXPECT_EQ(type(b.collectivePermute(v, {0, 1, 1, 0})), "f32[8,16]");
  f.finish({});
  EXPECT_EQ(f.check(), "");
}

TEST(Builder, PutsOpsAtItsPlace) {
  Main f;
  ValueId x = f.arg(f.f32({}));
  f.finish({x});
  f.b.at(f.b.region(), 0);
  ValueId a = f.b.unary(Opcode::negate, x);
  f.b.unary(Opcode::abs, a);
  std::vector<OpId> sink;
  f.b.into(f.b.region(), &sink);
  f.b.unary(Opcode::sine, x);
  EXPECT_EQ(sink.size(), 1u);
  EXPECT_EQ(f.text(),
            "module @ hlo\nfunc @main(%a0: f32[]) -> (f32[])\n  %0 = negate %a0 : f32[]\n  %1 = abs %0 : "
            "f32[]\n  return %a0\n");
  EXPECT_EQ(f.check(), "");
}

TEST(Builder, IdentitiesAreNeutral) {
  Main f;
  auto text = [&](Opcode combiner, ElementType element) {
    std::optional<ValueId> v = f.b.identity(combiner, f.t(element, {}));
    if (!v) return std::string("none");
    const Literal& l = f.m.literal(f.m.findAttr(f.m.value(*v).def, AttrKey::value)->literal);
    return elementText(element, l.bytes.data());
  };
  EXPECT_EQ(text(Opcode::add, ElementType::kF32), "0");
  EXPECT_EQ(text(Opcode::multiply, ElementType::kBF16), "1");
  EXPECT_EQ(text(Opcode::maximum, ElementType::kF32), "0xff800000");
  EXPECT_EQ(text(Opcode::minimum, ElementType::kF8E4M3FN), "448");
  EXPECT_EQ(text(Opcode::maximum, ElementType::kS8), "-128");
  EXPECT_EQ(text(Opcode::minimum, ElementType::kU32), "4294967295");
  EXPECT_EQ(text(Opcode::and_, ElementType::kPred), "true");
  EXPECT_EQ(text(Opcode::and_, ElementType::kS16), "-1");
  EXPECT_EQ(text(Opcode::subtract, ElementType::kF32), "none");
}

}  // namespace
}  // namespace tpu::hlo
