// Every form of op the printers use, by what is read from it.
#include "testing.h"

namespace tpu::frontend {
namespace {

struct Form {
  const char* signature;
  const char* body;
  const char* ops;
};

const Form kForms[] = {
    // One type for all.
    {"(%a: tensor<4xf32>) -> tensor<4xf32>",
     "%0 = stablehlo.tanh %a : tensor<4xf32>\n return %0 : tensor<4xf32>",
     "%0 = tanh %a0 : f32[4]\nreturn %0\n"},
    {"(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32>",
     "%0 = stablehlo.add %a, %b : tensor<4xf32>\n stablehlo.return %0 : tensor<4xf32>",
     "%0 = add %a0, %a1 : f32[4]\nreturn %0\n"},
    {"(%a: tensor<4xf32>) -> tensor<4xf32>",
     "%0 = chlo.square %a : tensor<4xf32> -> tensor<4xf32>\n return %0 : tensor<4xf32>",
     "%0 = chlo.square %a0 : f32[4]\nreturn %0\n"},
    {"(%a: tensor<4xf32>) -> tensor<4xf32>",
     "%0 = \"stablehlo.exponential\"(%a) <{result_accuracy = #stablehlo.result_accuracy<mode = "
     "#stablehlo.result_accuracy_mode<HIGHEST>>}> : (tensor<4xf32>) -> tensor<4xf32>\n return %0 : "
     "tensor<4xf32>",
     "%0 = exponential %a0 {result_accuracy=#stablehlo.result_accuracy<mode = "
     "#stablehlo.result_accuracy_mode<HIGHEST>>} : f32[4]\nreturn %0\n"},
    // Words and keywords.
    {"(%a: tensor<4xi32>, %b: tensor<4xi32>) -> tensor<4xi1>",
     "%0 = stablehlo.compare LT, %a, %b, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>\n return %0 "
     ": tensor<4xi1>",
     "%0 = compare %a0, %a1 {comparison_direction=LT, compare_type=SIGNED} : pred[4]\nreturn %0\n"},
    {"(%a: tensor<4xi32>, %b: tensor<4xi32>) -> tensor<4xi1>",
     "%0 = stablehlo.compare  GE, %a, %b : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>\n return %0 : "
     "tensor<4xi1>",
     "%0 = compare %a0, %a1 {comparison_direction=GE} : pred[4]\nreturn %0\n"},
    {"(%p: tensor<i1>, %a: tensor<2xf32>) -> tensor<2xf32>",
     "%0 = stablehlo.select %p, %a, %a : tensor<i1>, tensor<2xf32>\n return %0 : tensor<2xf32>",
     "%0 = select %a0, %a1, %a1 : f32[2]\nreturn %0\n"},
    {"(%a: tensor<f32>, %b: tensor<2xf32>) -> tensor<2xf32>",
     "%0 = stablehlo.clamp %a, %b, %a : (tensor<f32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>\n return "
     "%0 : tensor<2xf32>",
     "%0 = clamp %a0, %a1, %a0 : f32[2]\nreturn %0\n"},
    {"() -> tensor<2x3xi32>", "%0 = stablehlo.iota dim = 1 : tensor<2x3xi32>\n return %0 : tensor<2x3xi32>",
     "%0 = iota {iota_dimension=1} : s32[2,3]\nreturn %0\n"},
    {"(%a: tensor<3xf32>) -> tensor<2x3xf32>",
     "%0 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>\n return %0 : "
     "tensor<2x3xf32>",
     "%0 = broadcast_in_dim %a0 {broadcast_dimensions=[1]} : f32[2,3]\nreturn %0\n"},
    {"(%a: tensor<2x3xf32>) -> tensor<3x2xf32>",
     "%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>\n return %0 : "
     "tensor<3x2xf32>",
     "%0 = transpose %a0 {permutation=[1,0]} : f32[3,2]\nreturn %0\n"},
    {"(%a: tensor<8x8xf32>) -> tensor<3x8xf32>",
     "%0 = stablehlo.slice %a [1:7:2, 0:8] : (tensor<8x8xf32>) -> tensor<3x8xf32>\n return %0 : "
     "tensor<3x8xf32>",
     "%0 = slice %a0 {start_indices=[1,0], limit_indices=[7,8], strides=[2,1]} : f32[3,8]\nreturn %0\n"},
    {"(%a: tensor<8xf32>, %i: tensor<i32>) -> tensor<2xf32>",
     "%0 = stablehlo.dynamic_slice %a, %i, sizes = [2] : (tensor<8xf32>, tensor<i32>) -> tensor<2xf32>\n "
     "return %0 : tensor<2xf32>",
     "%0 = dynamic_slice %a0, %a1 {slice_sizes=[2]} : f32[2]\nreturn %0\n"},
    {"(%a: tensor<8xf32>, %u: tensor<2xf32>, %i: tensor<i32>) -> tensor<8xf32>",
     "%0 = stablehlo.dynamic_update_slice %a, %u, %i : (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> "
     "tensor<8xf32>\n return %0 : tensor<8xf32>",
     "%0 = dynamic_update_slice %a0, %a1, %a2 : f32[8]\nreturn %0\n"},
    {"(%a: tensor<4xf32>, %v: tensor<f32>) -> tensor<8xf32>",
     "%0 = stablehlo.pad %a, %v, low = [1], high = [-0], interior = [1] : (tensor<4xf32>, tensor<f32>) -> "
     "tensor<8xf32>\n return %0 : tensor<8xf32>",
     "%0 = pad %a0, %a1 {edge_padding_low=[1], edge_padding_high=[0], interior_padding=[1]} : f32[8]\nreturn "
     "%0\n"},
    {"(%a: tensor<4xf32>) -> tensor<8xf32>",
     "%0 = stablehlo.concatenate %a, %a, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>\n return "
     "%0 : tensor<8xf32>",
     "%0 = concatenate %a0, %a0 {dimension=0} : f32[8]\nreturn %0\n"},
    {"(%a: tensor<2x4x8xf32>, %b: tensor<2x8x3xbf16>) -> tensor<2x4x3xf32>",
     "%0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision "
     "= [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, "
     "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : "
     "(tensor<2x4x8xf32>, tensor<2x8x3xbf16>) -> tensor<2x4x3xf32>\n return %0 : tensor<2x4x3xf32>",
     "%0 = dot_general %a0, %a1 {lhs_batching_dimensions=[0], rhs_batching_dimensions=[0], "
     "lhs_contracting_dimensions=[2], rhs_contracting_dimensions=[1], precision_config=[DEFAULT,DEFAULT], "
     "algorithm=<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, "
     "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>} : f32[2,4,3]\nreturn %0\n"},
    {"(%a: tensor<4x8xf32>, %b: tensor<8x3xf32>) -> tensor<4x3xf32>",
     "%0 = \"stablehlo.dot_general\"(%a, %b) <{dot_dimension_numbers = "
     "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = "
     "[#stablehlo<precision DEFAULT>, #stablehlo<precision HIGH>]}> : (tensor<4x8xf32>, tensor<8x3xf32>) -> "
     "tensor<4x3xf32>\n return %0 : tensor<4x3xf32>",
     "%0 = dot_general %a0, %a1 {lhs_contracting_dimensions=[1], rhs_contracting_dimensions=[0], "
     "precision_config=[DEFAULT,HIGH]} : f32[4,3]\nreturn %0\n"},
    {"(%a: tensor<1x8x8x2xf32>, %b: tensor<3x3x2x4xf32>) -> tensor<1x8x8x4xf32>",
     "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = "
     "{stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} "
     ": (tensor<1x8x8x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x8x8x4xf32>\n return %0 : tensor<1x8x8x4xf32>",
     "%0 = convolution %a0, %a1 {window_strides=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], "
     "padding=[1,1,1,1], window_reversal=[0,0], input_batch_dimension=0, input_feature_dimension=3, "
     "input_spatial_dimensions=[1,2], kernel_input_feature_dimension=2, kernel_output_feature_dimension=3, "
     "kernel_spatial_dimensions=[0,1], output_batch_dimension=0, output_feature_dimension=3, "
     "output_spatial_dimensions=[1,2], feature_group_count=1, batch_group_count=1} : f32[1,8,8,4]\nreturn "
     "%0\n"},
    {"(%a: tensor<4xf32>) -> tensor<4xf32>",
     "%0 = \"mhlo.erf\"(%a) : (tensor<4xf32>) -> tensor<4xf32>\n %1 = mhlo.add %0, %a : tensor<4xf32>\n"
     "return %1 : tensor<4xf32>",
     "%0 = chlo.erf %a0 : f32[4]\n%1 = add %0, %a0 : f32[4]\nreturn %1\n"},
    {"(%a: tensor<4x8xf32>, %b: tensor<8x3xf32>) -> tensor<4x3xf32>",
     "%0 = \"mhlo.dot_general\"(%a, %b) <{dot_dimension_numbers = #mhlo.dot<lhs_contracting_dimensions = [1], "
     "rhs_contracting_dimensions = [0]>, precision_config = [#mhlo<precision HIGH>, #mhlo<precision HIGH>]}> : "
     "(tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>\n return %0 : tensor<4x3xf32>",
     "%0 = dot_general %a0, %a1 {lhs_contracting_dimensions=[1], rhs_contracting_dimensions=[0], "
     "precision_config=[HIGH,HIGH]} : f32[4,3]\nreturn %0\n"},
    {"(%a: tensor<4xf32>) -> tensor<4xf32>",
     "%0 = stablehlo.reduce_precision %a, format = e5m10 : tensor<4xf32>\n return %0 : tensor<4xf32>",
     "%0 = reduce_precision %a0 {exponent_bits=5, mantissa_bits=10} : f32[4]\nreturn %0\n"},
    {"(%a: tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)",
     "%s, %b = stablehlo.rng_bit_generator %a, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, "
     "tensor<4xui32>)\n return %s, %b : tensor<2xui64>, tensor<4xui32>",
     "%0, %1 = rng_bit_generator %a0 {rng_algorithm=THREE_FRY} : u64[2], u32[4]\nreturn %0, %1\n"},
    {"(%a: tensor<4xf32>) -> tensor<3xcomplex<f32>>",
     "%0 = stablehlo.fft %a, type = RFFT, length = [4] : (tensor<4xf32>) -> tensor<3xcomplex<f32>>\n return "
     "%0 : tensor<3xcomplex<f32>>",
     "%0 = fft %a0 {fft_type=RFFT, fft_length=[4]} : c64[3]\nreturn %0\n"},
    {"(%a: tensor<4xf32>) -> tensor<2xi32>",
     "%v, %i = chlo.top_k(%a, k = 2) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)\n return %i : "
     "tensor<2xi32>",
     "%0, %1 = chlo.top_k %a0 {k=2} : f32[2], s32[2]\nreturn %1\n"},
    // Tuples, tokens, barriers, calls out.
    {"(%a: tensor<4xf32>) -> tensor<4xf32>",
     "%0 = stablehlo.tuple %a, %a : tuple<tensor<4xf32>, tensor<4xf32>>\n %1 = stablehlo.get_tuple_element "
     "%0[1] : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>\n return %1 : tensor<4xf32>",
     "%0 = tuple %a0, %a0 : (f32[4], f32[4])\n%1 = get_tuple_element %0 {index=1} : f32[4]\nreturn %1\n"},
    {"(%a: tensor<4xf32>) -> tensor<4xf32>",
     "%0:2 = stablehlo.optimization_barrier %a, %a : tensor<4xf32>, tensor<4xf32>\n return %0#1 : "
     "tensor<4xf32>",
     "%0, %1 = optimization_barrier %a0, %a0 : f32[4], f32[4]\nreturn %1\n"},
    {"(%a: tensor<4xf32>) -> tensor<4xf32>",
     "%0 = stablehlo.custom_call @Sharding(%a) {backend_config = \"\", mhlo.sharding = \"{devices=[2]0,1}\", "
     "api_version = 1 : i32, foo.bar = {x = [1, <2, \"}\">]}, unit} : (tensor<4xf32>) -> tensor<4xf32>\n "
     "return %0 : tensor<4xf32>",
     "%0 = custom_call %a0 {call_target_name=Sharding, backend_config=\"\", api_version=1, "
     "mhlo_sharding={devices=[2]0,1}, extra=foo.bar = {x = [1, <2, \"}\">]}, unit} : f32[4]\nreturn %0\n"},
    // Regions.
    {"(%a: tensor<4x2xf32>, %z: tensor<f32>) -> tensor<2xf32>",
     "%0 = stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [0] : "
     "(tensor<4x2xf32>, tensor<f32>) -> tensor<2xf32>\n return %0 : tensor<2xf32>",
     "%0 = reduce %a0, %a1 {dimensions=[0]} : f32[2]\n{(%a2: f32[], %a3: f32[])\n  %1 = maximum %a2, %a3 : "
     "f32[]\n  return %1\n}\nreturn %0\n"},
    {"(%a: tensor<4xf32>, %i: tensor<4xi32>, %z: tensor<f32>, %k: tensor<i32>) -> tensor<i32>",
     "%0:2 = stablehlo.reduce(%a init: %z), (%i init: %k) across dimensions = [0] : (tensor<4xf32>, "
     "tensor<4xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)\n"
     "reducer(%x: tensor<f32>, %y: tensor<f32>) (%v: tensor<i32>, %w: tensor<i32>)  {\n %1 = stablehlo.add "
     "%x, %y : tensor<f32>\n stablehlo.return %1, %w : tensor<f32>, tensor<i32>\n }\n return %0#1 : "
     "tensor<i32>",
     "%0, %1 = reduce %a0, %a1, %a2, %a3 {dimensions=[0]} : f32[], s32[]\n{(%a4: f32[], %a5: s32[], %a6: "
     "f32[], %a7: s32[])\n  %2 = add %a4, %a6 : f32[]\n  return %2, %a7\n}\nreturn %1\n"},
    {"(%n: tensor<i32>) -> tensor<i32>",
     "%0:2 = stablehlo.while(%i = %n, %j = %n) : tensor<i32>, tensor<i32> attributes {mhlo.x = 1 : i32}\n "
     "cond {\n %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n "
     "stablehlo.return %1 : tensor<i1>\n } do {\n stablehlo.return %j, %n : tensor<i32>, tensor<i32>\n }\n "
     "return %0#0 : tensor<i32>",
     "%0, %1 = while %a0, %a0 {extra=mhlo.x = 1 : i32} : s32[], s32[]\n{(%a1: s32[], %a2: s32[])\n  %2 = "
     "compare %a1, %a0 {comparison_direction=LT} : pred[]\n  return %2\n}\n{(%a3: s32[], %a4: s32[])\n  "
     "return %a4, %a0\n}\nreturn %0\n"},
    {"(%p: tensor<i1>, %a: tensor<2xf32>) -> tensor<2xf32>",
     "%0 = \"stablehlo.if\"(%p) ({\n stablehlo.return %a : tensor<2xf32>\n }, {\n %1 = stablehlo.negate %a : "
     "tensor<2xf32>\n stablehlo.return %1 : tensor<2xf32>\n }) : (tensor<i1>) -> tensor<2xf32>\n return %0 : "
     "tensor<2xf32>",
     "%0 = if %a0 : f32[2]\n{\n  return %a1\n}\n{\n  %1 = negate %a1 : f32[2]\n  return %1\n}\nreturn %0\n"},
    {"(%a: tensor<4xf32>) -> tensor<4xf32>",
     "%0 = \"stablehlo.sort\"(%a) <{dimension = -1 : i64, is_stable}> ({\n ^bb0(%x: tensor<f32>, %y: "
     "tensor<f32>):\n %1 = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> "
     "tensor<i1>\n stablehlo.return %1 : tensor<i1>\n }) : (tensor<4xf32>) -> tensor<4xf32>\n return %0 : "
     "tensor<4xf32>",
     "%0 = sort %a0 {dimension=0, is_stable=true} : f32[4]\n{(%a1: f32[], %a2: f32[])\n  %1 = compare %a1, "
     "%a2 {comparison_direction=LT, compare_type=TOTALORDER} : pred[]\n  return %1\n}\nreturn %0\n"},
    {"(%a: tensor<5x3xf32>, %i: tensor<2x1xi32>) -> tensor<2x3xf32>",
     "%0 = \"stablehlo.gather\"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
     "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, "
     "slice_sizes = array<i64: 1, 3>}> : (tensor<5x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>\n return %0 : "
     "tensor<2x3xf32>",
     "%0 = gather %a0, %a1 {slice_sizes=[1,3], offset_dims=[1], collapsed_slice_dims=[0], "
     "start_index_map=[0], index_vector_dim=1, indices_are_sorted=false} : f32[2,3]\nreturn %0\n"},
    {"(%a: tensor<4x6xf32>) -> tensor<4x6xf32>",
     "%0 = \"stablehlo.all_reduce\"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, "
     "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({\n ^bb0(%x: "
     "tensor<f32>, %y: tensor<f32>):\n %1 = stablehlo.add %x, %y : tensor<f32>\n stablehlo.return %1 : "
     "tensor<f32>\n }) : (tensor<4x6xf32>) -> tensor<4x6xf32>\n return %0 : tensor<4x6xf32>",
     "%0 = all_reduce %a0 {replica_groups=[[0,1],[2,3]], channel_id=3, channel_type=1, "
     "use_global_device_ids=true} : f32[4,6]\n{(%a1: f32[], %a2: f32[])\n  %1 = add %a1, %a2 : f32[]\n  "
     "return %1\n}\nreturn %0\n"},
    // Other dialects' names for known ops.
    {"() -> tensor<2xi64>",
     "%0 = arith.constant {name = \"c\"} dense<[1, -2]> : tensor<2xi64>\n return %0 : tensor<2xi64>",
     "%0 = constant {value=[1,-2], extra=name = \"c\"} : s64[2]\nreturn %0\n"},
};

TEST(Forms, AreReadAsStated) {
  for (const Form& form : kForms)
    EXPECT_EQ(opsText(accept(mainOf(form.signature, form.body))), form.ops) << form.body;
}

TEST(Forms, FunctionsAndCalls) {
  hlo::Module m = accept(
      R"(module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32, other.thing = [1, {a = "}"}]} {
  func.func public @main(%arg0: tensor<4xf32> {tf.aliasing_output = 1 : i32} loc("params['w']"), %arg1: tensor<4xf32> {jax.buffer_donor = true, mhlo.sharding = "{replicated}"}) -> (tensor<4xf32> {jax.result_info = "result[0]"}, tensor<4xf32>) {
    %0:2 = call @helper(%arg0) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    return %0#1, %0#0 : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @helper(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    stablehlo.return %arg0, %arg0 : tensor<4xf32>, tensor<4xf32>
  }
})");
  EXPECT_EQ(m.name, "jit_f");
  EXPECT_EQ(m.num_partitions, 8);
  EXPECT_EQ(m.source_file, "t.mlir");
  ASSERT_EQ(m.attrs.size(), 1u);
  EXPECT_EQ(m.attrs[0].second, "[1, {a = \"}\"}]");
  const hlo::Func& main = m.func(m.entry);
  EXPECT_EQ(m.string(main.arg_ports[0].name), "params['w']");
  EXPECT_EQ(main.arg_ports[0].alias, 1);
  EXPECT_TRUE(main.arg_ports[1].donated);
  EXPECT_EQ(main.arg_ports[1].attrs, "mhlo.sharding = \"{replicated}\"");
  EXPECT_EQ(m.string(main.result_ports[0].name), "result[0]");
  EXPECT_FALSE(main.result_ports[1].name.valid());
  EXPECT_TRUE(m.funcs[1].is_private);
}

TEST(Forms, AMeshMayStandOutsideOfAModule) {
  const std::string mesh = "sdy.mesh @mesh = <[\"x\"=2], device_ids=[1, 0]> loc(unknown)\n", func = R"(
    func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
      return %a : tensor<4xf32>
    })";
  for (const std::string& text : {mesh + func, func + "\n" + mesh}) {
    const hlo::Module m = accept(text);
    EXPECT_TRUE(m.entry);
    EXPECT_EQ(m.meshes.size(), 1u);
  }
}

TEST(Forms, TensorFlowAliasesStandOnTheModule) {
  hlo::Module m = accept(
      R"(module @m attributes {mhlo.input_output_alias = [{alias = {kind = "may_alias", parameter_index = array<i64>, parameter_number = 1 : i64}, output_index = array<i64: 0>}]} {
  func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
    return %b : tensor<f32>
  }
})");
  EXPECT_EQ(m.func(m.entry).arg_ports[0].alias, -1);
  EXPECT_EQ(m.func(m.entry).arg_ports[1].alias, 0);
}

}  // namespace
}  // namespace tpu::frontend
