// One program in several spellings of its shardings - Shardy's, GSPMD's, HLO text - is one partitioned program.
#include "corpus_test_util.h"
#include "normal_form_test_util.h"

namespace tpu::partition {
namespace {

std::string contents(const std::filesystem::path& path) {
  auto input = readInput(path.string());
  return input ? std::move(input->bytes) : (ADD_FAILURE() << path, "");
}

llvm::Expected<hlo::Module> read(const std::string& text) {
  Collected sink;
  return frontend::readProgram(text, "program", sink);
}

using Form = std::string(const hlo::Module&);

std::string partitioned(hlo::Module m, Form form = normalForm) {
  Collected sink;
  if (llvm::Error e = partitionModule(m, {}, sink)) return errorText(std::move(e));
  return form(m);
}

std::string partitioned(const std::string& text, Form form = normalForm) {
  auto m = read(text);
  return m ? partitioned(std::move(*m), form) : errorText(m.takeError());
}

/// The first line in which two texts differ.
std::string difference(llvm::StringRef a, llvm::StringRef b) {
  llvm::SmallVector<llvm::StringRef, 0> x, y;
  a.split(x, '\n');
  b.split(y, '\n');
  for (size_t i = 0; i < std::max(x.size(), y.size()); ++i) {
    llvm::StringRef l = i < x.size() ? x[i] : "", r = i < y.size() ? y[i] : "";
    if (l != r) return "line " + std::to_string(i) + "\n  " + l.str() + "\n  " + r.str() + "\n";
  }
  return "";
}

void replaceAll(std::string& text, llvm::StringRef from, llvm::StringRef to) {
  for (size_t at = 0; (at = text.find(from.str(), at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to.str());
}

hlo::Module partitionedModule(const std::string& text) {
  Collected sink;
  auto m = read(text);
  if (!m) return ADD_FAILURE() << errorText(m.takeError()), hlo::Module();
  if (llvm::Error e = partitionModule(*m, {}, sink)) ADD_FAILURE() << errorText(std::move(e));
  return std::move(*m);
}

/// What the handed HLO texts say otherwise than the StableHLO that they were made from. XLA's converter rewrites ops before
/// any partitioner sees them; the StableHLO form of these is not in the text any more.
struct Rewritten {
  const char* name;
  const char* what;  // null: nothing
};
constexpr Rewritten kRewritten[] = {
    {"matmul_contract_sharded", nullptr},
    {"moe_all_to_all",
     "all_to_all with another concat than split dimension: transposes and reshapes around one along a single dimension; "
     "iota of two dimensions: one of one, broadcast; broadcast_in_dim that stretches a dimension of 1: reshape and broadcast"},
    {"transformer_scan_train",
     "scalar constants computed (1/128 for a convert and a divide, iota + 0), compared values of one element without their "
     "unit dimension; what loops carry in another order; broadcast_in_dim as in moe_all_to_all"},
};

TEST(Spellings, HloTextIsTheSameProgram) {
  if (absent()) GTEST_SKIP();
  for (const Rewritten& r : kRewritten) {
    std::string shardy = contents(jaxCases() / r.name / "program.mlir");
    std::string hlo = contents(jaxCases() / r.name / "program.hlo.txt");
    // How arguments and results are cut and every collective are the same, and so is every bit that comes out.
    EXPECT_EQ(difference(partitioned(shardy, communicationForm), partitioned(hlo, communicationForm)), "") << r.name;
    EXPECT_EQ(compareRuns(partitionedModule(shardy), partitionedModule(hlo), 5, 0), "") << r.name;
    EXPECT_EQ(difference(partitioned(shardy), partitioned(hlo)).empty(), r.what == nullptr) << r.name;
  }
}

TEST(Spellings, BytecodeIsTheSameProgram) {
  if (absent()) GTEST_SKIP();
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(jaxCases())) {
    if (!std::filesystem::exists(entry.path() / "program.mlirbc")) continue;
    std::string text = partitioned(contents(entry.path() / "program.mlir"));
    EXPECT_EQ(difference(text, partitioned(contents(entry.path() / "program.mlirbc"))), "") << entry.path().filename();
    ++compared;
  }
  EXPECT_GT(compared, 5);
}

TEST(Spellings, GspmdStringsAreTheSameProgram) {
  if (absent()) GTEST_SKIP();
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(jaxCases())) {
    if (!std::filesystem::exists(entry.path() / "program.mlir")) continue;
    auto m = read(contents(entry.path() / "program.mlir"));
    ASSERT_TRUE(bool(m)) << entry.path();
    hlo::Module gspmd = m->clone();
    if (m->meshes.empty()) continue;  // for one device
    ASSERT_TRUE(respellAsGspmd(gspmd)) << entry.path();
    EXPECT_EQ(difference(partitioned(std::move(*m)), partitioned(std::move(gspmd))), "") << entry.path().filename();
    ++compared;
  }
  EXPECT_GE(compared, 38);
}

/// HLO text with nothing but GSPMD's strings.
TEST(Spellings, HloStringsAreTheSameProgram) {
  if (absent()) GTEST_SKIP();
  std::string hlo = contents(jaxCases() / "matmul_contract_sharded" / "program.hlo.txt");
  std::string shardy = partitioned(hlo);
  for (size_t at; (at = hlo.find(", frontend_attributes={xla.sdy.sharding=")) != std::string::npos;)
    hlo.erase(at, hlo.find("}\"}", at) == std::string::npos ? hlo.find(">\"}", at) + 3 - at : hlo.find(">\"}", at) + 3 - at);
  replaceAll(hlo, "custom_call_target=\"xla.sdy.FuncResultSharding\", custom_call_has_side_effect=true",
             "custom_call_target=\"Sharding\", sharding={replicated}");
  size_t meshes = hlo.find(", frontend_attributes={xla.sdy.meshes");
  if (meshes != std::string::npos) hlo.erase(meshes, hlo.find('\n', meshes) - meshes);
  ASSERT_EQ(hlo.find("sdy"), std::string::npos) << hlo;
  EXPECT_EQ(difference(shardy, partitioned(hlo)), "");
}

TEST(Spellings, ThePermuteOfBothForms) {
  if (absent()) GTEST_SKIP();
  // The older form was asked for a whole argument; asked for the same, it is the same.
  std::string gspmd = contents(corpus() / "permute2_gspmd.mlir");
  replaceAll(gspmd, "mhlo.sharding = \"{replicated}\"", "mhlo.sharding = \"{devices=[2,1]0,1}\"");
  replaceAll(gspmd, "{jax.result_info = \"\"}", "{jax.result_info = \"\", mhlo.sharding = \"{devices=[2,1]<=[2]}\"}");
  std::string shardy = partitioned(contents(corpus() / "permute2_shardy.mlir"));
  EXPECT_EQ(difference(shardy, partitioned(gspmd)), "");
  EXPECT_EQ(difference(shardy, partitioned(contents(corpus() / "permute2_constraint_shardy.mlir"))), "");
}

/// One program as both dialects write it; `order` are the devices of the mesh <"x"=2, "y"=2>.
std::string both(bool shardy, const std::string& body, const std::string& order) {
  std::string list = order;
  replaceAll(list, " ", "");
  std::string port = shardy ? "{sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {\"y\"}]>}"
                            : "{mhlo.sharding = \"{devices=[2,2]" + list + "}\"}";
  return "module @m attributes {mhlo.num_partitions = 4 : i32} {\n" +
         (shardy ? "  sdy.mesh @mesh = <[\"x\"=2, \"y\"=2], device_ids=[" + order + "]>\n" : std::string()) +
         "  func.func public @main(%arg0: tensor<8x16xi32> " + port + ") -> (tensor<8x16xi32> " + port + ") {\n" + body +
         "  }\n}\n";
}

constexpr const char* kPairs =
    "<{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [3, 0]]> "
    ": tensor<3x2xi64>}> : (tensor<4x8xi32>) -> tensor<4x8xi32>\n";

std::string manualBody(bool shardy, const std::string& list) {
  std::string inside = std::string("      %p = \"stablehlo.collective_permute\"(%l) ") + kPairs +
                       "      %pid = stablehlo.partition_id : tensor<ui32>\n"
                       "      %i = stablehlo.convert %pid : (tensor<ui32>) -> tensor<i32>\n"
                       "      %b = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> tensor<4x8xi32>\n"
                       "      %s = stablehlo.add %p, %b : tensor<4x8xi32>\n";
  if (shardy) {
    return "    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{\"x\"}, {\"y\"}]>] out_shardings=[<@mesh, [{\"x\"}, "
           "{\"y\"}]>] manual_axes={\"x\", \"y\"} (%l: tensor<4x8xi32>) {\n" +
           inside + "      sdy.return %s : tensor<4x8xi32>\n    } : (tensor<8x16xi32>) -> tensor<8x16xi32>\n    return %0 : tensor<8x16xi32>\n";
  }
  return "    %q = stablehlo.custom_call @Sharding(%arg0) {mhlo.sharding = \"{devices=[2,2]" + list +
         "}\"} : (tensor<8x16xi32>) -> tensor<8x16xi32>\n"
         "    %l = stablehlo.custom_call @SPMDFullToShardShape(%q) {mhlo.sharding = \"{manual}\"} : (tensor<8x16xi32>) -> tensor<4x8xi32>\n" +
         inside + "    %0 = stablehlo.custom_call @SPMDShardToFullShape(%s) {mhlo.sharding = \"{devices=[2,2]" + list +
         "}\"} : (tensor<4x8xi32>) -> tensor<8x16xi32>\n    return %0 : tensor<8x16xi32>\n";
}

TEST(Spellings, DeviceOrdersOfManualRegions) {
  for (const char* order : {"0, 1, 2, 3", "0, 1, 3, 2", "3, 1, 0, 2", "0, 2, 1, 3"}) {
    std::string list = order;
    replaceAll(list, " ", "");
    std::string shardy = both(true, manualBody(true, list), order), gspmd = both(false, manualBody(false, list), order);
    Comparison c = compareText(shardy, "t.mlir", {}, 7);
    EXPECT_EQ(c.problem, "") << order;
    if (std::string(order) == "0, 2, 1, 3") continue;  // an iota of another shape: positions are counted differently
    EXPECT_EQ(difference(partitioned(shardy), partitioned(gspmd)), "") << order;
  }
}

/// Two meshes of one program; what the second one cuts, the first one cuts with axes of its own.
TEST(Spellings, TwoOrdersOfDevices) {
  auto text = [](const std::string& second, const std::string& wanted) {
    return "module @m {\n  sdy.mesh @mesh = <[\"x\"=4, \"y\"=2]>\n  sdy.mesh @other = " + second +
           "\n  func.func public @main(%arg0: tensor<8x16xi32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {\"y\"}]>}) -> "
           "(tensor<8x16xi32> {sdy.sharding = #sdy.sharding<@other, " + wanted + ">}) {\n"
           "    %0 = stablehlo.add %arg0, %arg0 : tensor<8x16xi32>\n    return %0 : tensor<8x16xi32>\n  }\n}\n";
  };
  struct Case {
    const char *second, *wanted, *same;  // the same over @mesh
  };
  for (const Case& c : {Case{"<[\"a\"=2, \"b\"=4], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>", "[{\"b\"}, {\"a\"}]", "[{\"x\"}, {\"y\"}]"},
                        Case{"<[\"a\"=2, \"b\"=4], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>", "[{\"a\", \"b\"}, {}]", "[{\"y\", \"x\"}, {}]"},
                        Case{"<[\"a\"=8], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>", "[{\"a\"}, {}]", "[{\"y\", \"x\"}, {}]"},
                        // Alone the axis is none of @mesh: devices that hold the same part come in another order.
                        Case{"<[\"a\"=4, \"b\"=2], device_ids=[0, 1, 3, 2, 4, 5, 7, 6]>", "[{\"a\"}, {}]", "[{\"x\"}, {}]"}}) {
    std::string ours = text(c.second, c.wanted), plain = text(c.second, c.same);
    replaceAll(plain, "@other, ", "@mesh, ");
    EXPECT_EQ(compareText(ours, "t.mlir", {}, 7).problem, "") << c.second << c.wanted;
    EXPECT_EQ(difference(partitioned(ours), partitioned(plain)), "") << c.second << c.wanted;
  }
  std::string refused = partitioned(text("<[\"a\"=4, \"b\"=2], device_ids=[0, 1, 3, 2, 4, 5, 7, 6]>", "[{\"b\"}, {}]"));
  EXPECT_NE(refused.find("order the devices differently, and no axes of @mesh cut them as [{\"b\"}, {}] does"), std::string::npos) << refused;
}

/// A region that is manual over one axis of two, with one inside that is manual over the other, as JAX writes them.
TEST(Spellings, RegionsManualOverSomeAxes) {
  const std::string pairs = "<{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<"
                            "[[0, 2], [2, 0], [1, 3], [3, 1]]> : tensor<4x2xi64>}> : (tensor<4x16xi32>) -> tensor<4x16xi32>\n";
  const std::string device = "        %pid = stablehlo.partition_id : tensor<ui32>\n"
                             "        %two = stablehlo.constant dense<2> : tensor<ui32>\n"
                             "        %at = stablehlo.divide %pid, %two : tensor<ui32>\n"
                             "        %i = stablehlo.convert %at : (tensor<ui32>) -> tensor<i32>\n";
  const std::string after = "      %b = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<i32>) -> tensor<4x16xi32>\n"
                            "      %s = stablehlo.maximum %p, %b : tensor<4x16xi32>\n";
  const std::string head = "  func.func public @main(%arg0: tensor<8x16xi32> ";
  std::string shardy =
      "module @m {\n  sdy.mesh @mesh = <[\"x\"=2, \"y\"=2]>\n" + head + "{sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {\"y\"}]>}) -> tensor<8x16xi32> {\n"
      "    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{\"x\", ?}, {?}]>] out_shardings=[<@mesh, [{\"x\", ?}, {?}]>] "
      "manual_axes={\"x\"} (%l: tensor<4x16xi32>) {\n      %p = \"stablehlo.collective_permute\"(%l) " + pairs +
      "      %j = sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, []>] manual_axes={\"y\"} () {\n" + device +
      "        sdy.return %i : tensor<i32>\n      } : () -> tensor<i32>\n      %c = stablehlo.constant dense<2> : tensor<i32>\n"
      "      %k = stablehlo.multiply %j, %c : tensor<i32>\n" + after +
      "      sdy.return %s : tensor<4x16xi32>\n    } : (tensor<8x16xi32>) -> tensor<8x16xi32>\n    return %0 : tensor<8x16xi32>\n  }\n}\n";
  std::string gspmd =
      "module @m attributes {mhlo.num_partitions = 4 : i32} {\n" + head + "{mhlo.sharding = \"{devices=[2,2]<=[4]}\"}) -> tensor<8x16xi32> {\n"
      "    %c = stablehlo.constant dense<2> : tensor<i32>\n"
      "    %q = stablehlo.custom_call @Sharding(%arg0) {backend_config = \"unspecified_dims=[0,1]\", mhlo.sharding = "
      "\"{devices=[2,1,2]<=[4] last_tile_dim_replicate}\"} : (tensor<8x16xi32>) -> tensor<8x16xi32>\n"
      "    %l = stablehlo.custom_call @SPMDFullToShardShape(%q) {backend_config = \"unspecified_dims=[0,1]\", mhlo.sharding = "
      "\"{devices=[1,1,2,2]<=[4] last_tile_dims={manual, replicated}}\"} : (tensor<8x16xi32>) -> tensor<4x16xi32>\n"
      "      %p = \"stablehlo.collective_permute\"(%l) " + pairs + device +
      "    %m = stablehlo.custom_call @Sharding(%i) {mhlo.sharding = \"{manual}\"} : (tensor<i32>) -> tensor<i32>\n"
      "    %j = stablehlo.custom_call @SPMDShardToFullShape(%m) {mhlo.sharding = \"{devices=[2,2]<=[4] last_tile_dims={manual, "
      "replicated}}\"} : (tensor<i32>) -> tensor<i32>\n    %k = stablehlo.multiply %j, %c : tensor<i32>\n" + after +
      "    %r = stablehlo.custom_call @SPMDShardToFullShape(%s) {backend_config = \"unspecified_dims=[0,1]\", mhlo.sharding = "
      "\"{devices=[2,1,2]<=[4] last_tile_dim_replicate}\"} : (tensor<4x16xi32>) -> tensor<8x16xi32>\n    return %r : tensor<8x16xi32>\n  }\n}\n";
  EXPECT_EQ(compareText(shardy, "t.mlir", {}, 7).problem, "");
  EXPECT_EQ(difference(partitioned(shardy), partitioned(gspmd)), "");
  EXPECT_EQ(compareText(gspmd, "t.mlir", {}, 7).problem, "");
  std::string leaks = gspmd;
  replaceAll(leaks, "return %r : tensor<8x16xi32>", "%z = stablehlo.negate %s : tensor<4x16xi32>\n    return %z : tensor<4x16xi32>");
  replaceAll(leaks, "-> tensor<8x16xi32> {", "-> tensor<4x16xi32> {");
  EXPECT_NE(partitioned(leaks).find("a value of a manual region is used outside of it"), std::string::npos) << partitioned(leaks);
}

TEST(Spellings, ShardAsIsASharedSharding) {
  auto text = [](bool group) {
    std::string note = group ? " shard_as 0" : "";
    return "module @m attributes {mhlo.num_partitions = 4 : i32} {\n"
           "  func.func public @main(%arg0: tensor<8x16xi32> {mhlo.sharding = \"{devices=[4,1]<=[4]}\"}, %arg1: "
           "tensor<8x16xi32>) -> (tensor<8x16xi32>, tensor<8x16xi32>) {\n"
           "    %0 = stablehlo.custom_call @Sharding(%arg0) {mhlo.sharding = \"{unknown" + note + "}\"} : (tensor<8x16xi32>) -> tensor<8x16xi32>\n"
           "    %1 = stablehlo.custom_call @Sharding(%arg1) {mhlo.sharding = \"{unknown" + note + "}\"} : (tensor<8x16xi32>) -> tensor<8x16xi32>\n"
           "    return %0, %1 : tensor<8x16xi32>, tensor<8x16xi32>\n  }\n}\n";
  };
  std::string with = partitioned(text(true));
  EXPECT_NE(with.find("argument 1 s32[2,16] of s32[8,16] {1x4}{}"), std::string::npos) << with;
  std::string without = partitioned(text(false));
  EXPECT_NE(without.find("argument 1 s32[8,16] of s32[8,16]\n"), std::string::npos) << without;
}

}  // namespace
}  // namespace tpu::partition
