// Seeded faults of collectives: each is found, at its op, before anything runs.
#include "check.h"

#include <gtest/gtest.h>

#include "equality_test_util.h"
#include "tpu/frontend/frontend.h"
#include "tpu/hlo/analysis.h"

namespace tpu::partition {
namespace {

/// `damage` changes the partitioned program in ways that its reader would refuse.
std::vector<Diagnostic> check(const std::string& body,
                              llvm::function_ref<void(hlo::Module&, hlo::OpId)> damage = nullptr) {
  std::string text = R"(module @m attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x", "y"}]>] out_shardings=[<@mesh, [{"x", "y"}]>] manual_axes={"x", "y"} (%arg1: tensor<2xf32>) {
)" + body + R"(      sdy.return %r : tensor<2xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
)";
  Collected sink;
  auto m = frontend::readProgram(text, "t.mlir", sink);
  if (!m) {
    ADD_FAILURE() << errorText(m.takeError());
    return {};
  }
  if (llvm::Error e = partitionModule(*m, {}, sink)) {
    ADD_FAILURE() << errorText(std::move(e));
    return {};
  }
  if (damage) {
    std::vector<hlo::OpId> collectives;
    hlo::walk(*m, [&](hlo::OpId id) {
      if (hlo::hasTrait(m->op(id).opcode, hlo::kCollective)) collectives.push_back(id);
    });
    for (hlo::OpId id : collectives) damage(*m, id);
  }
  return checkCollectives(*m);
}

std::string allReduce(const std::string& result, const std::string& operand, const std::string& groups,
                      const std::string& shape) {
  return "      " + result + " = \"stablehlo.all_reduce\"(" + operand + ") <{replica_groups = dense<" +
         groups + "> : tensor<" + shape +
         "xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> "
         "({\n      ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n        %s = stablehlo.add %a, %b : "
         "tensor<f32>\n        stablehlo.return %s : tensor<f32>\n"
         "      }) : (tensor<2xf32>) -> tensor<2xf32>\n";
}
std::string permute(const std::string& pairs, int n) {
  return "      %r = \"stablehlo.collective_permute\"(%arg1) <{source_target_pairs = dense<" + pairs +
         "> : tensor<" + std::to_string(n) +
         "x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<2xf32>) -> "
         "tensor<2xf32>\n";
}

TEST(Check, SoundProgramsPass) {
  EXPECT_TRUE(check(allReduce("%r", "%arg1", "[[0, 1], [2, 3]]", "2x2")).empty());
  EXPECT_TRUE(check(permute("[[0, 1], [1, 0]]", 2)).empty());
}

TEST(Check, GroupsThatMissADevice) {
  auto found = check(allReduce("%r", "%arg1", "[[0, 1], [2, 3]]", "2x2"), [](hlo::Module& m, hlo::OpId id) {
    m.removeAttr(id, hlo::AttrKey::axes);
    m.setGroups(id, hlo::AttrKey::replica_groups, {1, 2, {0, 1}});
  });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code, Code::kBadGroups);
  EXPECT_EQ(found[0].exit, ExitStatus::kHangs);
  EXPECT_NE(found[0].text.find("device 2"), std::string::npos);
  EXPECT_EQ(found[0].loc, "t.mlir:5:12");
}

TEST(Check, DeviceInTwoGroups) {
  auto found = check(allReduce("%r", "%arg1", "[[0, 1], [2, 3]]", "2x2"), [](hlo::Module& m, hlo::OpId id) {
    m.removeAttr(id, hlo::AttrKey::axes);
    m.setGroups(id, hlo::AttrKey::replica_groups, {2, 2, {0, 1, 1, 2}});
  });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code, Code::kBadGroups);
}

TEST(Check, PermuteThatIsNotOneToOne) {
  for (std::vector<int64_t> pairs : {std::vector<int64_t>{0, 1, 2, 1}, {0, 1, 0, 2}, {0, 9, 1, 0}}) {
    auto found = check(permute("[[0, 1], [1, 0]]", 2), [&](hlo::Module& m, hlo::OpId id) {
      m.removeAttr(id, hlo::AttrKey::axes);
      m.setGroups(id, hlo::AttrKey::source_target_pairs, {2, 2, pairs});
    });
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].code, Code::kBadPermute);
  }
}

std::string branch(const std::string& index) {
  return "      %pid = stablehlo.partition_id : tensor<ui32>\n      %two = stablehlo.constant dense<2> : "
         "tensor<ui32>\n" +
         index +
         "      %i = stablehlo.convert %d : (tensor<ui32>) -> tensor<i32>\n      %r = \"stablehlo.case\"(%i) "
         "({\n" +
         allReduce("%q", "%arg1", "[[0, 1], [2, 3]]", "2x2") +
         "        stablehlo.return %q : tensor<2xf32>\n      }, {\n        stablehlo.return %arg1 : "
         "tensor<2xf32>\n      }) : (tensor<i32>) -> tensor<2xf32>\n";
}

TEST(Check, BranchThatDiffersInsideAGroup) {
  // partition_id % 2 is the coordinate along y, over which the all_reduce runs.
  auto found = check(branch("      %d = stablehlo.remainder %pid, %two : tensor<ui32>\n"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code, Code::kDivergentCollective);
  EXPECT_EQ(found[0].exit, ExitStatus::kHangs);
  EXPECT_NE(found[0].text.find("device 0 meets it, device 1 does not"), std::string::npos) << found[0].text;
  // partition_id / 2 is the coordinate along x: all devices of a group go the same way.
  EXPECT_TRUE(check(branch("      %d = stablehlo.divide %pid, %two : tensor<ui32>\n")).empty());
}

TEST(Check, SwappedOrderOnTwoDevices) {
  std::string sum = allReduce("%p", "%arg1", "[[0, 1], [2, 3]]", "2x2");
  std::string ring = permute("[[0, 1], [1, 0], [2, 3], [3, 2]]", 4);
  auto named = [](std::string text, const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
    return text;
  };
  std::string first = sum + named(named(ring, "%r =", "%q ="), "(%arg1)", "(%p)");
  std::string second = named(named(ring, "%r =", "%u ="), "(%arg1)", "(%arg1)") +
                       named(named(sum, "%p =", "%v ="), "(%arg1)", "(%u)");
  auto found = check(
      "      %pid = stablehlo.partition_id : tensor<ui32>\n      %two = stablehlo.constant dense<2> : tensor<ui32>\n"
      "      %d = stablehlo.remainder %pid, %two : tensor<ui32>\n      %i = stablehlo.convert %d : (tensor<ui32>) -> "
      "tensor<i32>\n      %r = \"stablehlo.case\"(%i) ({\n" +
      first + "        stablehlo.return %q : tensor<2xf32>\n      }, {\n" + second +
      "        stablehlo.return %v : tensor<2xf32>\n      }) : (tensor<i32>) -> tensor<2xf32>\n");
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].code, Code::kDivergentCollective);
  EXPECT_NE(found[0].text.find("device 0 meets it, device 1 meets collective_permute"), std::string::npos) << found[0].text;
}

/// i = 0; while (i < bound) { x = all_reduce(x) along y; i = i + 1 }; `bound` defines %n.
std::string loop(const std::string& bound) {
  return bound +
         "      %zero = stablehlo.constant dense<0> : tensor<i32>\n"
         "      %w:3 = stablehlo.while(%i = %zero, %x = %arg1, %end = %n) : tensor<i32>, tensor<2xf32>, tensor<i32>\n"
         "       cond {\n        %t = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
         "        stablehlo.return %t : tensor<i1>\n      } do {\n" +
         allReduce("%q", "%x", "[[0, 1], [2, 3]]", "2x2") +
         "        %one = stablehlo.constant dense<1> : tensor<i32>\n        %j = stablehlo.add %i, %one : tensor<i32>\n"
         "        stablehlo.return %j, %q, %end : tensor<i32>, tensor<2xf32>, tensor<i32>\n      }\n"
         "      %r = stablehlo.add %w#1, %w#1 : tensor<2xf32>\n";
}

std::string byDevice(const std::string& op) {
  return "      %pid = stablehlo.partition_id : tensor<ui32>\n      %two = stablehlo.constant dense<2> : tensor<ui32>\n"
         "      %d = stablehlo." + op + " %pid, %two : tensor<ui32>\n"
         "      %k = stablehlo.convert %d : (tensor<ui32>) -> tensor<i32>\n"
         "      %three = stablehlo.constant dense<3> : tensor<i32>\n      %n = stablehlo.add %k, %three : tensor<i32>\n";
}

TEST(Check, LoopsWhoseTripsDifferInsideAGroup) {
  auto found = check(loop(byDevice("remainder")));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code, Code::kDivergentCollective);
  EXPECT_EQ(found[0].exit, ExitStatus::kHangs);
  EXPECT_NE(found[0].text.find("all_reduce over y"), std::string::npos) << found[0].text;
  EXPECT_NE(found[0].text.find("device 0 makes 3 trips of the loop at t.mlir:"), std::string::npos) << found[0].text;
  EXPECT_NE(found[0].text.find("device 1 makes 4"), std::string::npos) << found[0].text;
  EXPECT_NE(found[0].loc, "");
  // Trips that differ along x only: both devices of a group make the same.
  EXPECT_TRUE(check(loop(byDevice("divide"))).empty());
}

TEST(Check, PredicatesThatFollowFromShardedData) {
  std::string decide =
      "      %first = stablehlo.slice %arg1 [0:1] : (tensor<2xf32>) -> tensor<1xf32>\n"
      "      %v = stablehlo.reshape %first : (tensor<1xf32>) -> tensor<f32>\n";
  std::string to_int = "      %n = stablehlo.convert %u : (tensor<f32>) -> tensor<i32>\n";
  auto named = [](std::string text, const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
    return text;
  };
  auto found = check(loop(decide + named(to_int, "%u", "%v")));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code, Code::kDivergentCollective);
  EXPECT_NE(found[0].text.find("devices 0 and 1 may decide differently at t.mlir:"), std::string::npos) << found[0].text;
  // What all devices have summed is the same on all.
  std::string sum = named(named(allReduce("%u", "%v", "[[0, 1, 2, 3]]", "1x4"), "tensor<2xf32>", "tensor<f32>"), "%s", "%sum");
  EXPECT_TRUE(check(loop(decide + sum + to_int)).empty());
}

TEST(Check, BodiesWhoseCollectivesDifferByDevice) {
  // One body for all devices: half of them sum along y, the others along x.
  auto found = check(
      "      %pid = stablehlo.partition_id : tensor<ui32>\n      %two = stablehlo.constant dense<2> : tensor<ui32>\n"
      "      %d = stablehlo.remainder %pid, %two : tensor<ui32>\n      %i = stablehlo.convert %d : (tensor<ui32>) -> "
      "tensor<i32>\n      %r = \"stablehlo.case\"(%i) ({\n" +
      allReduce("%q", "%arg1", "[[0, 1], [2, 3]]", "2x2") + "        stablehlo.return %q : tensor<2xf32>\n      }, {\n" +
      allReduce("%v", "%arg1", "[[0, 2], [1, 3]]", "2x2") +
      "        stablehlo.return %v : tensor<2xf32>\n      }) : (tensor<i32>) -> tensor<2xf32>\n");
  ASSERT_EQ(found.size(), 1u);  // the sum along x is met by both devices of its groups
  EXPECT_EQ(found[0].code, Code::kDivergentCollective);
  EXPECT_NE(found[0].text.find("device 0 meets it, device 1 meets all_reduce at"), std::string::npos) << found[0].text;
}

TEST(Check, PartsJoinedByAnotherOperation) {
  Collected sink;
  auto m = frontend::readProgram(R"(module @m {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) {
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
)", "t.mlir", sink);
  ASSERT_TRUE(bool(m));
  ASSERT_FALSE(bool(partitionModule(*m, {}, sink)));
  EXPECT_TRUE(checkCollectives(*m).empty());
  hlo::walk(*m, [&](hlo::OpId id) {
    if (m->op(id).opcode == hlo::Opcode::all_reduce)
      m->op(m->region(m->op(id).regions[0]).ops[0]).opcode = hlo::Opcode::maximum;
  });
  auto found = checkCollectives(*m);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code, Code::kWrongReducer);
  EXPECT_EQ(found[0].loc, "t.mlir:5:10");
}

}  // namespace
}  // namespace tpu::partition
