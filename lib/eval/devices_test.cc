// Several devices: collectives by groups and by axes, manual computations, paths that part, replicas that
// differ.
#include "test_util.h"

namespace tpu::eval {
namespace {

std::vector<int32_t> counting(int n) {
  std::vector<int32_t> v(n);
  for (int i = 0; i < n; ++i) v[i] = i;
  return v;
}

// A body over mesh x=4, y=2 on rows cut by x; the result is cut by `out`.
std::string manual(const std::string& local_in, const std::string& body, const std::string& local_out,
                   const std::string& out, const std::string& global_in, const std::string& global_out) {
  return "module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {\n"
         "sdy.mesh @mesh = <[\"x\"=4, \"y\"=2]>\n"
         "func.func public @main(%a: " +
         global_in + ") -> (" + global_out +
         ") {\n"
         "%r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{\"x\"}]>] out_shardings=[<@mesh, [" +
         out + "]>] manual_axes={\"x\", \"y\"} (%p: " + local_in + ") {\n" + body +
         "\nsdy.return %q : " + local_out + "\n} : (" + global_in + ") -> " + global_out +
         "\nreturn %r : " + global_out + "\n} }";
}

const char* const kSum = R"(({
    ^bb0(%s: tensor<i32>, %t: tensor<i32>):
      %u = stablehlo.add %s, %t : tensor<i32>
      stablehlo.return %u : tensor<i32>
    }))";

TEST(Devices, AllReduceByListedGroups) {
  const std::string body =
      std::string(
          R"(%q = "stablehlo.all_reduce"(%p) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
    replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> )") +
      kSum + " : (tensor<2xi32>) -> tensor<2xi32>";
  auto r = run(manual("tensor<2xi32>", body, "tensor<2xi32>", "{}", "tensor<8xi32>", "tensor<2xi32>"),
               {s32({8}, counting(8))});
  EXPECT_EQ(valuesOf<int32_t>(r[0]), (std::vector<int32_t>{12, 16}));
}

TEST(Devices, PermuteLeavesZerosWhereNothingArrives) {
  const std::string body =
      R"(%q = "stablehlo.collective_permute"(%p) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
    source_target_pairs = dense<[[0, 2], [1, 3], [2, 4], [3, 5]]> : tensor<4x2xi64>}> : (tensor<2xi32>) -> tensor<2xi32>)";
  auto r = run(manual("tensor<2xi32>", body, "tensor<2xi32>", "{\"x\"}", "tensor<8xi32>", "tensor<8xi32>"),
               {s32({8}, counting(8))});
  EXPECT_EQ(valuesOf<int32_t>(r[0]), (std::vector<int32_t>{0, 0, 0, 1, 2, 3, 0, 0}));
}

TEST(Devices, GatherScatterAndAllToAll) {
  const std::string gather =
      R"(%q = "stablehlo.all_gather"(%p) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
    replica_groups = dense<[[6, 4, 2, 0], [7, 5, 3, 1]]> : tensor<2x4xi64>, use_global_device_ids}> : (tensor<2xi32>) -> tensor<8xi32>)";
  auto g = run(manual("tensor<2xi32>", gather, "tensor<8xi32>", "{}", "tensor<8xi32>", "tensor<8xi32>"),
               {s32({8}, counting(8))});
  EXPECT_EQ(valuesOf<int32_t>(g[0]), (std::vector<int32_t>{6, 7, 4, 5, 2, 3, 0, 1}));
  const std::string scatter =
      std::string(
          R"(%q = "stablehlo.reduce_scatter"(%p) <{scatter_dimension = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
    replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> )") +
      kSum + " : (tensor<4xi32>) -> tensor<1xi32>";
  auto s =
      run(manual("tensor<4xi32>", scatter, "tensor<1xi32>", "{\"x\"}", "tensor<16xi32>", "tensor<4xi32>"),
          {s32({16}, counting(16))});
  EXPECT_EQ(valuesOf<int32_t>(s[0]), (std::vector<int32_t>{24, 28, 32, 36}));
  const std::string exchange =
      R"(%q = "stablehlo.all_to_all"(%p) <{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 4 : i64,
    channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>}> : (tensor<4xi32>) -> tensor<4xi32>)";
  auto e =
      run(manual("tensor<4xi32>", exchange, "tensor<4xi32>", "{\"x\"}", "tensor<16xi32>", "tensor<16xi32>"),
          {s32({16}, counting(16))});
  EXPECT_EQ(valuesOf<int32_t>(e[0]),
            (std::vector<int32_t>{0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15}));
}

// While each device runs as often as its number says, the others wait outside.
TEST(Devices, LoopsOfDifferentLength) {
  const std::string body = R"(
    %id = stablehlo.partition_id : tensor<ui32>
    %n = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %o = stablehlo.constant dense<1> : tensor<i32>
    %w:2 = stablehlo.while(%i = %z, %x = %p) : tensor<i32>, tensor<2xi32>
     cond {
      %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %y = stablehlo.add %x, %x : tensor<2xi32>
      %j = stablehlo.add %i, %o : tensor<i32>
      stablehlo.return %j, %y : tensor<i32>, tensor<2xi32>
    }
    %h = stablehlo.slice %w#1 [0:1] : (tensor<2xi32>) -> tensor<1xi32>
    %q = stablehlo.reshape %h : (tensor<1xi32>) -> tensor<1xi32>)";
  auto r =
      run(manual("tensor<2xi32>", body, "tensor<1xi32>", "{\"x\", \"y\"}", "tensor<8xi32>", "tensor<8xi32>"),
          {s32({8}, {1, 0, 1, 0, 1, 0, 1, 0})});
  EXPECT_EQ(valuesOf<int32_t>(r[0]), (std::vector<int32_t>{1, 2, 4, 8, 16, 32, 64, 128}));
}

std::string branchOnDevice(const std::string& groups) {
  return std::string(R"(
    %id = stablehlo.partition_id : tensor<ui32>
    %two = stablehlo.constant dense<2> : tensor<ui32>
    %c = stablehlo.compare LT, %id, %two, UNSIGNED : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %q = "stablehlo.if"(%c) ({
      %s = "stablehlo.all_reduce"(%p) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
        replica_groups = dense<)") +
         groups + R"(> : tensor<4x2xi64>, use_global_device_ids}> )" + kSum +
         R"( : (tensor<2xi32>) -> tensor<2xi32>
      stablehlo.return %s : tensor<2xi32>
    }, {
      stablehlo.return %p : tensor<2xi32>
    }) : (tensor<i1>) -> tensor<2xi32>)";
}

TEST(Devices, CollectiveWithinTheBranchOfItsGroup) {
  auto r = run(manual("tensor<2xi32>", branchOnDevice("[[0, 1], [2, 3], [4, 5], [6, 7]]"), "tensor<2xi32>",
                      "{\"x\"}", "tensor<8xi32>", "tensor<8xi32>"),
               {s32({8}, counting(8))});
  EXPECT_EQ(valuesOf<int32_t>(r[0]), (std::vector<int32_t>{0, 2, 2, 3, 4, 5, 6, 7}));
}

TEST(Devices, CollectiveThatCannotCompleteNamesWhoIsMissing) {
  Collected sink;
  auto module =
      frontend::readProgram(manual("tensor<2xi32>", branchOnDevice("[[0, 4], [1, 5], [2, 6], [3, 7]]"),
                                   "tensor<2xi32>", "{\"x\"}", "tensor<8xi32>", "tensor<8xi32>"),
                            "test.mlir", sink);
  ASSERT_TRUE(static_cast<bool>(module)) << message(module.takeError());
  auto out = evaluate(*module, {s32({8}, counting(8))});
  ASSERT_FALSE(static_cast<bool>(out));
  const std::vector<Diagnostic> d = takeDiagnostics(out.takeError());
  EXPECT_EQ(d[0].exit, ExitStatus::kHangs);
  EXPECT_EQ(d[0].text, "device 0 waits in stablehlo.all_reduce for device 4, which is on another path");
}

TEST(Devices, ReplicasThatDifferAreReported) {
  Collected sink;
  const std::string body = R"(
    %id = stablehlo.partition_id : tensor<ui32>
    %n = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %b = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %q = stablehlo.add %p, %b : tensor<2xi32>)";
  auto module = frontend::readProgram(
      manual("tensor<2xi32>", body, "tensor<2xi32>", "{\"x\"}", "tensor<8xi32>", "tensor<8xi32>"),
      "test.mlir", sink);
  ASSERT_TRUE(static_cast<bool>(module)) << message(module.takeError());
  sink.diagnostics.clear();
  auto out = evaluate(*module, {s32({8}, counting(8))}, &sink);
  ASSERT_TRUE(static_cast<bool>(out)) << message(out.takeError());
  ASSERT_FALSE(sink.diagnostics.empty());
  EXPECT_EQ(sink.diagnostics[0].text, "devices 0 and 1 should hold the same part of a result but differ");
}

// Only x is manual: the body sees whole rows of y, and a nested body cuts them.
TEST(Devices, NestedManualAxes) {
  const std::string text = R"(module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
    sdy.mesh @mesh = <["x"=4, "y"=2]>
    func.func public @main(%a: tensor<4x6xi32>) -> (tensor<4x6xi32>) {
      %r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%p: tensor<1x6xi32>) {
        %q = sdy.manual_computation(%p) in_shardings=[<@mesh, [{}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>] manual_axes={"y"} (%s: tensor<1x3xi32>) {
          %t = stablehlo.reverse %s, dims = [1] : tensor<1x3xi32>
          sdy.return %t : tensor<1x3xi32>
        } : (tensor<1x6xi32>) -> tensor<1x6xi32>
        sdy.return %q : tensor<1x6xi32>
      } : (tensor<4x6xi32>) -> tensor<4x6xi32>
      return %r : tensor<4x6xi32>
    } })";
  auto r = run(text, {s32({4, 6}, counting(24))});
  EXPECT_EQ(valuesOf<int32_t>(r[0]), (std::vector<int32_t>{2,  1,  0,  5,  4,  3,  8,  7,  6,  11, 10, 9,
                                                           14, 13, 12, 17, 16, 15, 20, 19, 18, 23, 22, 21}));
}

// GSPMD's spelling of a manual region.
TEST(Devices, ShapeBordersOfGspmd) {
  const std::string text = R"(module {
    func.func public @main(%a: tensor<2x4xi32>) -> tensor<2x4xi32> {
      %1 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{devices=[2,1]0,1}"} : (tensor<2x4xi32>) -> tensor<2x4xi32>
      %2 = stablehlo.custom_call @SPMDFullToShardShape(%1) {mhlo.sharding = "{manual}"} : (tensor<2x4xi32>) -> tensor<1x4xi32>
      %3 = "stablehlo.collective_permute"(%2) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
        source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : (tensor<1x4xi32>) -> tensor<1x4xi32>
      %5 = stablehlo.custom_call @SPMDShardToFullShape(%3) {mhlo.sharding = "{devices=[2,1]0,1}"} : (tensor<1x4xi32>) -> tensor<2x4xi32>
      return %5 : tensor<2x4xi32>
    } })";
  auto r = run(text, {s32({2, 4}, counting(8))});
  EXPECT_EQ(valuesOf<int32_t>(r[0]), (std::vector<int32_t>{4, 5, 6, 7, 0, 1, 2, 3}));
}

}  // namespace
}  // namespace tpu::eval
