// The tables of a module: names of ops, interning, editing in place, attributes in order.
#include "tpu/hlo/module.h"

#include <gtest/gtest.h>

namespace tpu::hlo {
namespace {

TEST(OpInfo, LooksUpFullNamesAndMnemonics) {
  EXPECT_EQ(findOpcode("stablehlo.add"), Opcode::add);
  EXPECT_EQ(findOpcode("add"), Opcode::add);
  EXPECT_EQ(findOpcode("and"), Opcode::and_);
  EXPECT_EQ(findOpcode("tan"), Opcode::tan);
  EXPECT_EQ(findOpcode("chlo.tan"), Opcode::chlo_tan);
  EXPECT_EQ(findOpcode("sdy.return"), Opcode::return_);
  EXPECT_EQ(findOpcode("stablehlo.return"), Opcode::return_);
  EXPECT_FALSE(findOpcode("tosa.add"));
  EXPECT_EQ(opInfo(Opcode::while_).mnemonic, "while");
  EXPECT_EQ(opInfo(Opcode::sdy_manual_computation).mnemonic, "sdy.manual_computation");
  EXPECT_EQ(findAttrKey("lhs_contracting_dimensions"), AttrKey::lhs_contracting_dimensions);
  EXPECT_EQ(attrKind(AttrKey::precision_config), AttrKind::kStrings);
}

TEST(Module, InternsEqualThingsOnce) {
  Module m;
  TypeId a = m.tensorType(ElementType::kF32, {2, 3});
  EXPECT_EQ(a, m.tensorType(ElementType::kF32, {2, 3}));
  EXPECT_NE(a, m.tensorType(ElementType::kF32, {3, 2}));
  EXPECT_NE(a, m.tensorType(ElementType::kBF16, {2, 3}));
  EXPECT_EQ(a, m.internType(m.type(a)));
  EXPECT_EQ(m.internLoc("a.py:1:2"), m.internLoc("a.py:1:2"));
  EXPECT_EQ(m.string(StringId()), "");
  Sharding s;
  s.mesh = MeshId(0);
  s.dims.resize(2);
  ShardingId plain = m.internSharding(s);
  s.dims[0].open = true;
  EXPECT_NE(plain, m.internSharding(s));
  s.dims[0].open = false;
  EXPECT_EQ(plain, m.internSharding(s));
}

TEST(Module, EditsInPlaceAndClones) {
  Module m;
  TypeId t = m.tensorType(ElementType::kF32, {4});
  FuncId f = m.addFunc("main", false);
  RegionId body = m.func(f).body;
  ValueId x = m.addArg(body, t, LocId());
  OpId a = m.append(body, Opcode::negate, {x}, {t}, LocId());
  OpId b = m.append(body, Opcode::add, {m.op(a).results[0], x}, {t}, LocId());
  m.append(body, Opcode::return_, {m.op(b).results[0]}, {}, LocId());
  OpId c = m.insert(body, 0, Opcode::abs, {x}, {t}, LocId());
  Module copy = m.clone();

  m.replaceAllUses(m.op(a).results[0], m.op(c).results[0]);
  m.erase(a);
  EXPECT_EQ(m.region(body).ops.size(), 3u);
  EXPECT_EQ(m.op(b).operands[0], m.op(c).results[0]);
  EXPECT_FALSE(m.op(a).parent.valid());

  EXPECT_EQ(copy.region(body).ops.size(), 4u);
  EXPECT_EQ(copy.op(b).operands[0], copy.op(a).results[0]);
  EXPECT_EQ(copy.tensorType(ElementType::kF32, {4}), t);
  EXPECT_EQ(copy.findFunc("main"), f);
}

TEST(Module, KeepsAttributesInTableOrder) {
  Module m;
  FuncId f = m.addFunc("main", false);
  OpId op = m.append(m.func(f).body, Opcode::compare, {}, {}, LocId());
  m.setString(op, AttrKey::comparison_direction, "LE");
  m.setInts(op, AttrKey::dimensions, {1, 2});
  m.setInt(op, AttrKey::dimension, 7);
  m.setInt(op, AttrKey::dimension, 8);
  ASSERT_EQ(m.op(op).attrs.size(), 3u);
  EXPECT_EQ(m.attr(m.op(op).attrs[0]).key, AttrKey::dimension);
  EXPECT_EQ(m.attr(m.op(op).attrs[1]).key, AttrKey::dimensions);
  EXPECT_EQ(m.getInt(op, AttrKey::dimension), 8);
  EXPECT_EQ(m.getInt(op, AttrKey::comparison_direction), static_cast<int64_t>(Comparison::kLe));
  m.removeAttr(op, AttrKey::dimension);
  EXPECT_EQ(m.getInt(op, AttrKey::dimension, -5), -5);
}

TEST(Module, FollowsChainsWhenReplacing) {
  Module m;
  TypeId t = m.tensorType(ElementType::kF32, {});
  RegionId body = m.func(m.addFunc("main", false)).body;
  ValueId a = m.addArg(body, t, LocId()), b = m.addArg(body, t, LocId()), c = m.addArg(body, t, LocId());
  OpId op = m.append(body, Opcode::add, {a, b}, {t}, LocId());
  std::vector<ValueId> map(m.numValues());
  map[a.v] = b;
  map[b.v] = c;
  m.replaceUses(map);
  EXPECT_EQ(m.op(op).operands[0], c);
  EXPECT_EQ(m.op(op).operands[1], c);
}

}  // namespace
}  // namespace tpu::hlo
