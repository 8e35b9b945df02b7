// Lowered programs run without time on the llo interpreter and must give what the evaluator gives for the source.
#include "tpu/lower/lower.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tpu/emulate/llo_interpreter.h"
#include "tpu/eval/evaluate.h"
#include "tpu/frontend/frontend.h"
#include "tpu/support/float_convert.h"

namespace tpu::lower {
namespace {

struct CollectSink : DiagnosticSink {
  void report(const Diagnostic&) override {}
};

std::string messageOf(llvm::Error err) {
  std::string text;
  for (const Diagnostic& d : takeDiagnostics(std::move(err))) text += d.loc + ": " + d.text + "\n";
  return text;
}

HostTensor randomTensor(const hlo::Type& t, uint32_t seed) {
  HostTensor x(t.element, t.dims);
  uint32_t state = seed * 2654435761u + 12345u;
  for (int64_t i = 0; i < x.numElements(); ++i) {
    state = state * 1664525u + 1013904223u;
    int32_t v = static_cast<int32_t>(state >> 16) % 2001 - 1000;
    switch (t.element) {
      case ElementType::kF32: x.data<float>()[i] = static_cast<float>(v) / 256.0f; break;
      case ElementType::kBF16: x.data<uint16_t>()[i] = f32ToBf16(static_cast<float>(v) / 256.0f); break;
      case ElementType::kPred: x.data<uint8_t>()[i] = static_cast<uint8_t>(v & 1); break;
      case ElementType::kS8: case ElementType::kU8: x.data<uint8_t>()[i] = static_cast<uint8_t>(v); break;
      default: x.data<int32_t>()[i] = v; break;
    }
  }
  return x;
}

double valueAt(const HostTensor& x, int64_t i) {
  switch (x.element) {
    case ElementType::kF32: return x.data<float>()[i];
    case ElementType::kBF16: return bf16ToF32(x.data<uint16_t>()[i]);
    case ElementType::kPred: case ElementType::kU8: return x.data<uint8_t>()[i];
    case ElementType::kS8: return x.data<int8_t>()[i];
    case ElementType::kU32: return x.data<uint32_t>()[i];
    default: return x.data<int32_t>()[i];
  }
}

/// Runs @main of the text on both; multi-device texts are per-device programs (stage spmd) on `target`.
void check(const std::string& text, const std::string& target_text = "v5e:1x1", double tolerance = 1e-5) {
  CollectSink sink;
  auto module = frontend::readProgram(text, "test.mlir", sink);
  ASSERT_TRUE(static_cast<bool>(module)) << messageOf(module.takeError());
  if (module->num_partitions > 1) module->stage = hlo::Stage::kSpmd;
  auto target = target::parseTarget(target_text);
  ASSERT_TRUE(static_cast<bool>(target)) << messageOf(target.takeError());
  std::vector<HostTensor> args;
  const hlo::Region& body = module->region(module->func(module->entry).body);
  for (size_t i = 0; i < body.args.size(); ++i) args.push_back(randomTensor(module->typeOf(body.args[i]), static_cast<uint32_t>(i + 1)));
  auto want = eval::evaluate(*module, args);
  ASSERT_TRUE(static_cast<bool>(want)) << messageOf(want.takeError());
  LowerOptions options;
  options.default_passes = 6;
  auto llo = lower(std::move(*module), *target, options, sink);
  ASSERT_TRUE(static_cast<bool>(llo)) << messageOf(llo.takeError());
  auto got = emulate::interpret(*llo, target->chip, args);
  ASSERT_TRUE(static_cast<bool>(got)) << messageOf(got.takeError());
  ASSERT_EQ(got->size(), want->size());
  for (size_t r = 0; r < want->size(); ++r) {
    const HostTensor &g = (*got)[r], &w = (*want)[r];
    ASSERT_EQ(g.dims, w.dims);
    double t = g.element == ElementType::kF32 ? tolerance : g.element == ElementType::kBF16 ? 1e-2 : 0;
    for (int64_t i = 0; i < w.numElements(); ++i) {
      double a = valueAt(g, i), b = valueAt(w, i);
      if (std::isnan(a) && std::isnan(b)) continue;
      ASSERT_LE(std::fabs(a - b), t * std::max(1.0, std::fabs(b))) << "result " << r << " element " << i << ": " << a << " expected " << b;
    }
  }
}

std::string oneOp(const std::string& args, const std::string& result, const std::string& body) {
  return "func.func @main(" + args + ") -> " + result + " {\n" + body + "\n  return %r : " + result + "\n}\n";
}

TEST(Lower, ElementwiseChainIsOneKernel) {
  std::string text = oneOp("%a: tensor<33x200xf32>, %b: tensor<33x200xf32>", "tensor<33x200xf32>",
                           "  %0 = stablehlo.multiply %a, %b : tensor<33x200xf32>\n"
                           "  %1 = stablehlo.add %0, %b : tensor<33x200xf32>\n"
                           "  %r = stablehlo.tanh %1 : tensor<33x200xf32>");
  check(text);
  CollectSink sink;
  auto module = frontend::readProgram(text, "test.mlir", sink);
  ASSERT_TRUE(static_cast<bool>(module));
  auto llo = lower(std::move(*module), *target::parseTarget("v5e:1x1"), {}, sink);
  ASSERT_TRUE(static_cast<bool>(llo));
  EXPECT_EQ(llo->kernels.size(), 1u);
  EXPECT_TRUE(llo->driver.dmas.empty());
}

TEST(Lower, BroadcastsAndReductions) {
  check(oneOp("%a: tensor<20x150xf32>", "tensor<20x150xf32>",
              "  %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
              "  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [1] : (tensor<20x150xf32>, tensor<f32>) -> tensor<20xf32>\n"
              "  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<20xf32>) -> tensor<20x150xf32>\n"
              "  %r = stablehlo.subtract %a, %1 : tensor<20x150xf32>"));
}

TEST(Lower, MovesOfEveryType) {
  for (const char* t : {"f32", "bf16", "i32", "i8", "ui8", "i1"}) {
    std::string a = std::string("tensor<13x37x") + t + ">", b = std::string("tensor<37x13x") + t + ">";
    check(oneOp("%a: " + a, b, "  %r = stablehlo.transpose %a, dims = [1, 0] : (" + a + ") -> " + b));
    check(oneOp("%a: " + a, b, "  %r = stablehlo.reshape %a : (" + a + ") -> " + b));
    std::string s = std::string("tensor<5x9x") + t + ">";
    check(oneOp("%a: " + a, s, "  %r = stablehlo.slice %a [1:11:2, 3:30:3] : (" + a + ") -> " + s));
    std::string j = std::string("tensor<26x37x") + t + ">";
    check(oneOp("%a: " + a, j, "  %r = stablehlo.concatenate %a, %a, dim = 0 : (" + a + ", " + a + ") -> " + j));
    check(oneOp("%a: " + a, a, "  %r = stablehlo.reverse %a, dims = [0, 1] : " + a));
  }
}

TEST(Lower, LargeTranspose) {
  check(oneOp("%a: tensor<3x130x70xf32>", "tensor<70x3x130xf32>",
              "  %r = stablehlo.transpose %a, dims = [2, 0, 1] : (tensor<3x130x70xf32>) -> tensor<70x3x130xf32>"));
}

TEST(Lower, DynamicSlicesClamp) {
  for (const char* t : {"f32", "bf16"}) {
    std::string a = std::string("tensor<9x40x200x") + t + ">", s = std::string("tensor<2x7x30x") + t + ">";
    check("func.func @main(%a: " + a + ") -> (" + s + ", " + a + ") {\n"
          "  %i = stablehlo.constant dense<8> : tensor<i32>\n  %j = stablehlo.constant dense<5> : tensor<i32>\n"
          "  %k = stablehlo.constant dense<-3> : tensor<i32>\n"
          "  %0 = stablehlo.dynamic_slice %a, %i, %j, %k, sizes = [2, 7, 30] : (" + a + ", tensor<i32>, tensor<i32>, tensor<i32>) -> " + s + "\n"
          "  %1 = stablehlo.dynamic_update_slice %a, %0, %k, %i, %j : (" + a + ", " + s + ", tensor<i32>, tensor<i32>, tensor<i32>) -> " + a + "\n"
          "  return %0, %1 : " + s + ", " + a + "\n}\n");
  }
}

TEST(Lower, DotsInEveryOrientation) {
  check(oneOp("%a: tensor<5x17x40xf32>, %b: tensor<5x33x40xf32>", "tensor<5x17x33xf32>",
              "  %r = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<5x17x40xf32>, tensor<5x33x40xf32>) -> tensor<5x17x33xf32>"),
        "v5e:1x1", 1e-3);
  check(oneOp("%a: tensor<40x17xf32>, %b: tensor<40x9x3xf32>", "tensor<17x9x3xf32>",
              "  %r = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : (tensor<40x17xf32>, tensor<40x9x3xf32>) -> tensor<17x9x3xf32>"),
        "v5e:1x1", 1e-3);
  check(oneOp("%a: tensor<12x40xi32>, %b: tensor<40x9xi32>", "tensor<12x9xi32>",
              "  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<12x40xi32>, tensor<40x9xi32>) -> tensor<12x9xi32>"));
}

TEST(Lower, LoopsAndBranches) {
  check(
      "func.func @main(%a: tensor<16x16xf32>, %p: tensor<i1>) -> (tensor<16x16xf32>, tensor<i32>, tensor<16x16xf32>) {\n"
      "  %z = stablehlo.constant dense<0> : tensor<i32>\n  %n = stablehlo.constant dense<3> : tensor<i32>\n"
      "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
      "  %w:3 = stablehlo.while(%i = %z, %x = %a, %y = %a) : tensor<i32>, tensor<16x16xf32>, tensor<16x16xf32>\n"
      "   cond {\n    %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n    stablehlo.return %c : tensor<i1>\n"
      "  } do {\n    %j = stablehlo.add %i, %one : tensor<i32>\n    %s = stablehlo.add %x, %y : tensor<16x16xf32>\n"
      "    stablehlo.return %j, %y, %s : tensor<i32>, tensor<16x16xf32>, tensor<16x16xf32>\n  }\n"
      "  %b = \"stablehlo.if\"(%p) ({\n    %t = stablehlo.negate %w#1 : tensor<16x16xf32>\n    stablehlo.return %t : tensor<16x16xf32>\n"
      "  }, {\n    stablehlo.return %w#2 : tensor<16x16xf32>\n  }) : (tensor<i1>) -> tensor<16x16xf32>\n"
      "  return %w#2, %w#0, %b : tensor<16x16xf32>, tensor<i32>, tensor<16x16xf32>\n}\n");
}

std::string spmd(int devices, const std::string& args, const std::string& result, const std::string& body) {
  return "module @m attributes {mhlo.num_partitions = " + std::to_string(devices) + " : i32} {\n" + oneOp(args, result, body) + "}\n";
}

TEST(Lower, CollectivesAgreeWithTheEvaluator) {
  const std::string sum = " ({\n ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n  %s = stablehlo.add %x, %y : tensor<f32>\n  stablehlo.return %s : tensor<f32>\n })";
  const std::string groups = "replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids";
  const std::string own = "  %id = stablehlo.partition_id : tensor<ui32>\n  %f = stablehlo.convert %id : (tensor<ui32>) -> tensor<f32>\n"
                          "  %g = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<8x6xf32>\n  %m = stablehlo.add %a, %g : tensor<8x6xf32>\n";
  check(spmd(4, "%a: tensor<8x6xf32>", "tensor<8x6xf32>", own +
             "  %r = \"stablehlo.all_reduce\"(%m) <{" + groups + "}>" + sum + " : (tensor<8x6xf32>) -> tensor<8x6xf32>"), "v5e:2x2");
  check(spmd(4, "%a: tensor<8x6xf32>", "tensor<8x12xf32>", own +
             "  %r = \"stablehlo.all_gather\"(%m) <{all_gather_dim = 1 : i64, " + groups + "}> : (tensor<8x6xf32>) -> tensor<8x12xf32>"), "v5e:2x2");
  check(spmd(4, "%a: tensor<8x6xf32>", "tensor<4x6xf32>", own +
             "  %r = \"stablehlo.reduce_scatter\"(%m) <{scatter_dimension = 0 : i64, " + groups + "}>" + sum + " : (tensor<8x6xf32>) -> tensor<4x6xf32>"), "v5e:2x2");
  check(spmd(4, "%a: tensor<8x6xf32>", "tensor<16x3xf32>", own +
             "  %r = \"stablehlo.all_to_all\"(%m) <{split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, " + groups + "}> : (tensor<8x6xf32>) -> tensor<16x3xf32>"), "v5e:2x2");
  check(spmd(4, "%a: tensor<8x6xf32>", "tensor<8x6xf32>", own +
             "  %r = \"stablehlo.collective_permute\"(%m) <{source_target_pairs = dense<[[0, 1], [1, 2], [2, 0]]> : tensor<3x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<8x6xf32>) -> tensor<8x6xf32>"), "v5e:2x2");
}

TEST(Lower, RingAllReduce) {
  const std::string t = "tensor<360x256xf32>";
  check(spmd(4, "%a: " + t, t,
             "  %id = stablehlo.partition_id : tensor<ui32>\n  %f = stablehlo.convert %id : (tensor<ui32>) -> tensor<f32>\n"
             "  %g = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> " + t + "\n  %m = stablehlo.add %a, %g : " + t + "\n"
             "  %r = \"stablehlo.all_reduce\"(%m) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}>"
             " ({\n ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n  %s = stablehlo.add %x, %y : tensor<f32>\n  stablehlo.return %s : tensor<f32>\n }) : (" + t + ") -> " + t),
        "v5e:2x2");
}

TEST(Lower, BroadcastsInAnyOrderOfDimensions) {
  for (const char* t : {"f32", "i8"}) {
    std::string a = std::string("tensor<3x130x4x") + t + ">", b = std::string("tensor<4x1x130x3x2x") + t + ">";
    check(oneOp("%a: " + a, b, "  %r = stablehlo.broadcast_in_dim %a, dims = [3, 2, 0] : (" + a + ") -> " + b));
  }
}

TEST(Lower, Bitcasts) {
  check("func.func @main(%a: tensor<3x5xf32>, %b: tensor<7x4xi8>, %c: tensor<3x2xbf16>) -> (tensor<3x5xi32>, tensor<3x5x4xui8>, tensor<7xi32>, tensor<3xf32>, tensor<3x2x2xi8>) {\n"
        "  %0 = stablehlo.bitcast_convert %a : (tensor<3x5xf32>) -> tensor<3x5xi32>\n"
        "  %1 = stablehlo.bitcast_convert %a : (tensor<3x5xf32>) -> tensor<3x5x4xui8>\n"
        "  %2 = stablehlo.bitcast_convert %b : (tensor<7x4xi8>) -> tensor<7xi32>\n"
        "  %3 = stablehlo.bitcast_convert %c : (tensor<3x2xbf16>) -> tensor<3xf32>\n"
        "  %4 = stablehlo.bitcast_convert %c : (tensor<3x2xbf16>) -> tensor<3x2x2xi8>\n"
        "  return %0, %1, %2, %3, %4 : tensor<3x5xi32>, tensor<3x5x4xui8>, tensor<7xi32>, tensor<3xf32>, tensor<3x2x2xi8>\n}\n");
}

// Products as XLA writes them for TPUs, windows of one element, and spatial dimensions that pair up like a batch.
TEST(Lower, ConvolutionsThatAreProducts) {
  auto conv = [](const char* a, const char* b, const char* out, const char* labels, const std::string& window) {
    check(std::string("func.func @main(%a: ") + a + ", %b: " + b + ") -> " + out + " {\n  %0 = stablehlo.convolution(%a, %b) dim_numbers = " + labels +
          ", window = {" + window + "} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGHEST>, "
          "#stablehlo<precision HIGHEST>]} : (" + a + ", " + b + ") -> " + out + "\n  return %0 : " + out + "\n}\n");
  };
  conv("tensor<5x7xf32>", "tensor<7x3xf32>", "tensor<5x3xf32>", "[b, f]x[i, o]->[b, f]", "");
  conv("tensor<7x5xf32>", "tensor<3x7xf32>", "tensor<3x5xf32>", "[f, b]x[o, i]->[f, b]", "");
  conv("tensor<2x4x3x5xf32>", "tensor<1x1x5x6xf32>", "tensor<2x4x3x6xf32>", "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]", "stride = [1, 1]");
  conv("tensor<4x2x3xf32>", "tensor<5x3x4xf32>", "tensor<2x4x5xf32>", "[0, b, f]x[o, i, 0]->[b, 0, f]", "stride = [3], lhs_dilate = [4]");
}

TEST(Lower, Tuples) {
  const std::string t = "tuple<tensor<3xf32>, tensor<7xi32>>", u = "tuple<" + t + ", tensor<7xi32>>";
  check("func.func private @swap(%t: " + u + ") -> " + t + " {\n"
        "  %0 = stablehlo.get_tuple_element %t[0] : (" + u + ") -> " + t + "\n"
        "  %1 = stablehlo.get_tuple_element %0[0] : (" + t + ") -> tensor<3xf32>\n"
        "  %2 = stablehlo.get_tuple_element %t[1] : (" + u + ") -> tensor<7xi32>\n"
        "  %3 = stablehlo.add %2, %2 : tensor<7xi32>\n"
        "  %4 = stablehlo.tuple %1, %3 : " + t + "\n  return %4 : " + t + "\n}\n"
        "func.func @main(%a: tensor<3xf32>, %b: tensor<7xi32>) -> (tensor<7xi32>, tensor<3xf32>) {\n"
        "  %0 = stablehlo.tuple %a, %b : " + t + "\n  %1 = stablehlo.tuple %0, %b : " + u + "\n"
        "  %2 = call @swap(%1) : (" + u + ") -> " + t + "\n"
        "  %3 = stablehlo.get_tuple_element %2[1] : (" + t + ") -> tensor<7xi32>\n"
        "  %4 = stablehlo.get_tuple_element %2[0] : (" + t + ") -> tensor<3xf32>\n"
        "  return %3, %4 : tensor<7xi32>, tensor<3xf32>\n}\n");
}

TEST(Lower, ArraysWithoutElements) {
  for (const char* e : {"f32", "i8"}) {
    const std::string t = e, none = "tensor<0x3x" + t + ">", some = "tensor<2x3x" + t + ">", one = "tensor<" + t + ">", row = "tensor<3x" + t + ">";
    check("func.func @main(%a: " + none + ", %b: " + some + ", %c: " + one + ", %i: tensor<i32>) -> (" + none + ", " + some + ", tensor<3x0x" + t + ">, " + row +
          ", " + some + ", tensor<3x3x" + t + ">, " + some + ") {\n"
          "  %0 = stablehlo.add %a, %a : " + none + "\n"
          "  %1 = stablehlo.concatenate %0, %b, dim = 0 : (" + none + ", " + some + ") -> " + some + "\n"
          "  %2 = stablehlo.transpose %0, dims = [1, 0] : (" + none + ") -> tensor<3x0x" + t + ">\n"
          "  %3 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0] : (" + none + ", " + one + ") -> " + row + "\n"
          "  %4 = stablehlo.pad %0, %c, low = [1, 0], high = [1, 0], interior = [0, 0] : (" + none + ", " + one + ") -> " + some + "\n"
          "  %5 = stablehlo.dot_general %2, %a, contracting_dims = [1] x [0] : (tensor<3x0x" + t + ">, " + none + ") -> tensor<3x3x" + t + ">\n"
          "  %6 = stablehlo.dynamic_update_slice %b, %a, %i, %i : (" + some + ", " + none + ", tensor<i32>, tensor<i32>) -> " + some + "\n"
          "  return %0, %1, %2, %3, %4, %5, %6 : " + none + ", " + some + ", tensor<3x0x" + t + ">, " + row + ", " + some + ", tensor<3x3x" + t + ">, " + some + "\n}\n");
  }
}

TEST(Lower, ReductionsFromValuesOfTheRun) {
  check("func.func @main(%a: tensor<9x130xf32>, %c: tensor<f32>, %b: tensor<9x130xi8>, %d: tensor<i8>) -> (tensor<9xf32>, tensor<130xf32>, tensor<i8>, tensor<9xf32>, tensor<9xi8>) {\n"
        "  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [1] : (tensor<9x130xf32>, tensor<f32>) -> tensor<9xf32>\n"
        "  %1 = stablehlo.reduce(%a init: %c) applies stablehlo.maximum across dimensions = [0] : (tensor<9x130xf32>, tensor<f32>) -> tensor<130xf32>\n"
        "  %2 = stablehlo.reduce(%b init: %d) applies stablehlo.xor across dimensions = [0, 1] : (tensor<9x130xi8>, tensor<i8>) -> tensor<i8>\n"
        "  %3:2 = stablehlo.reduce(%a init: %c), (%b init: %d) across dimensions = [1] : (tensor<9x130xf32>, tensor<9x130xi8>, tensor<f32>, tensor<i8>) -> (tensor<9xf32>, tensor<9xi8>)\n"
        "   reducer(%p: tensor<f32>, %q: tensor<f32>) (%x: tensor<i8>, %y: tensor<i8>) {\n"
        "    %s = stablehlo.add %p, %q : tensor<f32>\n    %t = stablehlo.add %x, %y : tensor<i8>\n    stablehlo.return %s, %t : tensor<f32>, tensor<i8>\n  }\n"
        "  return %0, %1, %2, %3#0, %3#1 : tensor<9xf32>, tensor<130xf32>, tensor<i8>, tensor<9xf32>, tensor<9xi8>\n}\n");
}

// How many results of the program take an argument's storage; its values are checked as well.
int shared(const std::string& attribute, const std::string& body) {
  const std::string t = "tensor<64x256xf32>";
  const std::string text = "func.func @main(%a: " + t + " {" + attribute + "}, %b: " + t + ", %u: tensor<2x256xf32>, %i: tensor<i32>) -> " + t + " {\n" + body +
                           "\n  return %r : " + t + "\n}\n";
  check(text);
  CollectSink sink;
  auto module = frontend::readProgram(text, "test.mlir", sink);
  auto llo = lower(std::move(*module), *target::parseTarget("v5e:1x1"), {}, sink);
  int n = 0;
  for (const llo::Buffer& b : llo->buffers) n += b.role == llo::Role::kResult && b.alias >= 0;
  return n;
}

// One dimension after the other, so that elements meet in their order.
TEST(Lower, ReductionsThatDoNotCommute) {
  for (const char* dims : {"0", "1", "2", "0, 1", "0, 2", "1, 2", "0, 1, 2", "0, 3", "0, 2, 3"}) {
    const std::string text = dims;
    std::string left;
    for (int d = 0; d < 4; ++d)
      if (text.find(static_cast<char>('0' + d)) == std::string::npos) left += std::vector<std::string>{"5x", "9x", "33x", "1x"}[d];
    const std::string type = left.empty() ? "tensor<i32>" : "tensor<" + left + "i32>";
    check(R"(func.func public @main(%x: tensor<5x9x33x1xi32>) -> )" + type + R"( {
      %i = stablehlo.constant dense<0> : tensor<i32>
      %r = stablehlo.reduce(%x init: %i) across dimensions = [)" + text + R"(] : (tensor<5x9x33x1xi32>, tensor<i32>) -> )" + type + R"(
        reducer(%a: tensor<i32>, %b: tensor<i32>) {
          %two = stablehlo.constant dense<2> : tensor<i32>
          %odd = stablehlo.remainder %b, %two : tensor<i32>
          %zero = stablehlo.constant dense<0> : tensor<i32>
          %p = stablehlo.compare NE, %odd, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
          %s = stablehlo.select %p, %b, %a : tensor<i1>, tensor<i32>
          stablehlo.return %s : tensor<i32>
        }
      return %r : )" + type + "\n}");
  }
}

TEST(Lower, ResultsTakeTheStorageOfDonatedArguments) {
  const std::string t = "tensor<64x256xf32>", named = "tf.aliasing_output = 0 : i32";
  const std::string sum = "  %r = stablehlo.add %a, %b : " + t;
  EXPECT_EQ(shared(named, sum), 1);
  EXPECT_EQ(shared("jax.buffer_donor = true", sum), 1);
  EXPECT_EQ(shared("", sum), 0);
  const std::string types = "(" + t + ", tensor<2x256xf32>, tensor<i32>, tensor<i32>) -> " + t;
  EXPECT_EQ(shared(named, "  %r = stablehlo.dynamic_update_slice %a, %u, %i, %i : " + types), 1);
  // Read again after the result began to be written.
  EXPECT_EQ(shared(named, "  %0 = stablehlo.dynamic_update_slice %a, %u, %i, %i : " + types + "\n  %r = stablehlo.reverse %a, dims = [0] : " + t), 0);
  EXPECT_EQ(shared(named, "  %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
                          "  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [0] : (" + t + ", tensor<f32>) -> tensor<256xf32>\n"
                          "  %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<256xf32>) -> " + t + "\n  %r = stablehlo.subtract %a, %1 : " + t), 1);
}

TEST(Lower, TotalOrderAndRemainders) {
  check("func.func @main(%a: tensor<5x7xf32>, %b: tensor<5x7xf32>) -> (tensor<5x7xi1>, tensor<5x7xf32>) {\n"
        "  %z = stablehlo.constant dense<0.0> : tensor<5x7xf32>\n  %n = stablehlo.negate %z : tensor<5x7xf32>\n"
        "  %0 = stablehlo.compare LT, %n, %z, TOTALORDER : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>\n"
        "  %1 = stablehlo.remainder %a, %b : tensor<5x7xf32>\n"
        "  return %0, %1 : tensor<5x7xi1>, tensor<5x7xf32>\n}\n");
}

TEST(Lower, RefusalsNameOpAndPlace) {
  CollectSink sink;
  auto module = frontend::readProgram(oneOp("%a: tensor<8xf32>", "tensor<8xf32>", "  %r = \"stablehlo.sort\"(%a) ({\n ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
                                            "  %c = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>\n  stablehlo.return %c : tensor<i1>\n }) : (tensor<8xf32>) -> tensor<8xf32>"),
                                      "test.mlir", sink);
  ASSERT_TRUE(static_cast<bool>(module)) << messageOf(module.takeError());
  auto llo = lower(std::move(*module), *target::parseTarget("v5e:1x1"), {}, sink);
  ASSERT_FALSE(static_cast<bool>(llo));
  std::string text = messageOf(llo.takeError());
  EXPECT_NE(text.find("stablehlo.sort"), std::string::npos) << text;
  EXPECT_NE(text.find("test.mlir:2"), std::string::npos) << text;
}

}  // namespace
}  // namespace tpu::lower
