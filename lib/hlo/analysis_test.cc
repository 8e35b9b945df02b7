// Facts about programs: trip counts, scalars folded, uses, dead code, inlining, combiners.
#include "tpu/hlo/analysis.h"

#include "testing.h"

namespace tpu::hlo {
namespace {

// while (i < limit) { i += step; v = -v } over a counter from `init`; returns the op.
OpId loop(Main& f, ValueId init, ValueId limit, int64_t step, Comparison direction, ValueId payload) {
  Builder& b = f.b;
  RegionId outer = b.region();
  OpId op = b.create(Opcode::while_, {init, payload}, {b.typeId(init), b.typeId(payload)});
  RegionId cond = b.addRegion(op), body = b.addRegion(op);
  for (RegionId region : {cond, body}) {
    ValueId i = f.m.addArg(region, b.typeId(init), b.loc), v = f.m.addArg(region, b.typeId(payload), b.loc);
    b.atEnd(region);
    if (region == cond)
      b.yield({b.compare(direction, i, limit)});
    else
      b.yield({b.add(i, b.scalarInt(ElementType::kS32, step)), b.unary(Opcode::negate, v)});
  }
  b.atEnd(outer);
  return op;
}

TEST(Analysis, CountsTrips) {
  auto trips = [](int64_t init, int64_t limit, int64_t step, Comparison direction) {
    Main f;
    ValueId payload = f.arg(f.f32({4}));
    OpId op = loop(f, f.b.scalarInt(ElementType::kS32, init), f.b.scalarInt(ElementType::kS32, limit), step,
                   direction, payload);
    return tripCount(f.m, op);
  };
  EXPECT_EQ(trips(0, 10, 1, Comparison::kLt), 10);
  EXPECT_EQ(trips(0, 10, 3, Comparison::kLt), 4);
  EXPECT_EQ(trips(0, 10, 3, Comparison::kLe), 4);
  EXPECT_EQ(trips(1, 10, 3, Comparison::kLe), 4);
  EXPECT_EQ(trips(10, 0, -1, Comparison::kGt), 10);
  EXPECT_EQ(trips(10, 0, -1, Comparison::kGe), 11);
  EXPECT_EQ(trips(5, 5, 1, Comparison::kLt), 0);
  EXPECT_EQ(trips(0, 10, 2, Comparison::kNe), 5);
  EXPECT_EQ(trips(0, 10, 3, Comparison::kNe), std::nullopt);
  EXPECT_EQ(trips(0, 10, -1, Comparison::kLt), std::nullopt);
  EXPECT_EQ(trips(0, 10, 0, Comparison::kLt), std::nullopt);
}

TEST(Analysis, UnknownTripsStayUnknown) {
  Main f;
  ValueId limit = f.arg(f.s32({})), payload = f.arg(f.f32({4}));
  OpId op = loop(f, f.b.scalarInt(ElementType::kS32, 0), limit, 1, Comparison::kLt, payload);
  EXPECT_EQ(tripCount(f.m, op), std::nullopt);
}

TEST(Analysis, FoldsScalarIntegers) {
  Main f;
  Builder& b = f.b;
  auto k = [&](int64_t v) { return b.scalarInt(ElementType::kS8, v); };
  EXPECT_EQ(constantInt(f.m, b.add(k(100), k(100))), -56);
  EXPECT_EQ(constantInt(f.m, b.multiply(b.subtract(k(3), k(5)), k(4))), -8);
  EXPECT_EQ(constantInt(f.m, b.divide(k(-7), k(2))), -3);
  EXPECT_EQ(constantInt(f.m, b.remainder(k(-7), k(2))), -1);
  EXPECT_EQ(constantInt(f.m, b.convert(k(-1), ElementType::kU32)), 4294967295);
  EXPECT_EQ(constantInt(f.m, b.minimum(k(-7), k(2))), -7);
  EXPECT_EQ(constantInt(f.m, b.divide(k(1), k(0))), std::nullopt);
  EXPECT_EQ(constantInt(f.m, f.arg(f.s32({}))), std::nullopt);
}

TEST(Analysis, ListsUsesInProgramOrder) {
  Main f;
  ValueId x = f.arg(f.f32({4}));
  ValueId a = f.b.unary(Opcode::negate, x);
  ValueId c = f.b.add(a, a);
  f.finish({c});
  Uses uses(f.m);
  EXPECT_TRUE(uses.single(x));
  ASSERT_EQ(uses.of(a).size(), 2u);
  EXPECT_EQ(uses.of(a)[1].operand, 1u);
  EXPECT_EQ(uses.of(a)[0].op, f.m.value(c).def);
}

TEST(Analysis, DeadCodeGoesAndWhatMustStayStays) {
  Main f;
  ValueId x = f.arg(f.f32({4}));
  f.b.unary(Opcode::negate, f.b.unary(Opcode::abs, x));
  loop(f, f.b.scalarInt(ElementType::kS32, 0), f.b.scalarInt(ElementType::kS32, 3), 1, Comparison::kLt, x);
  OpId keep = f.b.create(Opcode::custom_call, {x}, {f.f32({4})});
  f.m.setString(keep, AttrKey::call_target_name, "print");
  f.m.setBool(keep, AttrKey::has_side_effect, true);
  f.m.addFunc("unused", true);
  f.finish({x});
  EXPECT_EQ(eliminateDeadCode(f.m), 11u);
  EXPECT_EQ(f.text(),
            "module @ hlo\nfunc @main(%a0: f32[4]) -> (f32[4])\n"
            "  %0 = custom_call %a0 {call_target_name=print, has_side_effect=true} : f32[4]\n  return %a0\n");
  EXPECT_EQ(f.check(), "");
}

TEST(Analysis, InliningKeepsLocationsAndNesting) {
  Main f;
  TypeId t = f.f32({4});
  FuncId inner = f.m.addFunc("inner", true), outer = f.m.addFunc("outer", true);
  Builder in(f.m, f.m.func(inner).body, f.m.internLoc("inner.py:1:1"));
  ValueId p = f.m.addArg(f.m.func(inner).body, t, in.loc);
  in.yield({in.unary(Opcode::negate, p)});
  f.m.funcs[inner.v].result_types = {t};
  Builder out(f.m, f.m.func(outer).body, f.m.internLoc("outer.py:1:1"));
  ValueId q = f.m.addArg(f.m.func(outer).body, t, out.loc);
  ValueId once = out.result(out.call(inner, {q}));
  out.yield({out.result(out.call(inner, {once})), q});
  f.m.funcs[outer.v].result_types = {t, t};
  ValueId x = f.arg(t);
  OpId call = f.b.call(outer, {x});
  f.finish({f.b.add(f.b.result(call, 0), f.b.result(call, 1))});
  ASSERT_EQ(f.check(), "");
  ASSERT_FALSE(inlineCalls(f.m));
  EXPECT_EQ(toText(f.m),
            "module @ hlo\nfunc @main(%a0: f32[4]) -> (f32[4])\n"
            "  %0 = negate %a0 : f32[4]  ; inner.py:1:1\n  %1 = negate %0 : f32[4]  ; inner.py:1:1\n"
            "  %2 = add %1, %a0 : f32[4]  ; t.py:1:1\n  return %2  ; t.py:1:1\n");
  EXPECT_EQ(f.check(), "");
}

TEST(Analysis, RecursionIsRefused) {
  Main f;
  f.b.call(f.func, {});
  f.finish({});
  EXPECT_EQ(f.check(), "recursive call of @main");
  EXPECT_EQ(complaint(inlineCalls(f.m)), "recursive call of @main");
}

// Sixty functions, each of which calls the one before twice.
TEST(Analysis, CallsThatUnfoldWithoutEndAreRefused) {
  Main f;
  const TypeId t = f.f32({4});
  FuncId last;
  for (int i = 0; i < 60; ++i) {
    const FuncId func = f.m.addFunc("f" + std::to_string(i), true);
    const RegionId body = f.m.func(func).body;
    ValueId v = f.m.addArg(body, t, LocId());
    f.m.funcs[func.v].result_types = {t};
    Builder b(f.m, body);
    v = i == 0 ? b.result(b.create(Opcode::negate, {v}, {t})) : b.result(b.call(last, {b.result(b.call(last, {v}))}));
    b.yield({v});
    last = func;
  }
  const ValueId x = f.arg(t);
  f.finish({f.b.result(f.b.call(last, {x}))});
  EXPECT_EQ(f.check(), "");
  EXPECT_EQ(complaint(inlineCalls(f.m)), "the calls of this program unfold to more than 8388608 operations");
}

TEST(Analysis, RecognisesCombiners) {
  Main f;
  ValueId x = f.arg(f.f32({4}));
  ValueId sum = f.b.reduce(x, f.b.scalar(ElementType::kF32, 0), {0}, Opcode::add);
  EXPECT_EQ(combinerOf(f.m, f.m.op(f.m.value(sum).def).regions[0]), Opcode::add);
}

}  // namespace
}  // namespace tpu::hlo
