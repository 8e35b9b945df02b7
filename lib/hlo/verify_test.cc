// What the verifier and the op rules refuse.
#include "testing.h"

namespace tpu::hlo {
namespace {

// The complaint about one op over arguments of the given types.
struct Case {
  Main f;
  llvm::SmallVector<ValueId, 4> in;
  Case& arg(ElementType element, llvm::ArrayRef<int64_t> dims) {
    in.push_back(f.arg(f.t(element, dims)));
    return *this;
  }
  Case& f32(llvm::ArrayRef<int64_t> dims) { return arg(ElementType::kF32, dims); }
  Case& s32(llvm::ArrayRef<int64_t> dims) { return arg(ElementType::kS32, dims); }
  OpId op(Opcode opcode, llvm::ArrayRef<TypeId> results) { return f.b.create(opcode, in, results); }
  std::string check() {
    f.finish({});
    return f.check();
  }
  std::string check(Opcode opcode, llvm::ArrayRef<TypeId> results) {
    op(opcode, results);
    return check();
  }
};

TEST(Rules, Elementwise) {
  EXPECT_EQ(Case().f32({4}).f32({5}).check(Opcode::add, {}),
            "add: operands differ in type: f32[4] and f32[5] [add C1]");
  EXPECT_EQ(Case().f32({4}).check(Opcode::not_, {}), "not: does not take f32 [not I1]");
  EXPECT_EQ(Case().f32({4}).check(Opcode::add, {}), "add: has 1 operands, expected 2");
  Case wrong;
  wrong.f32({4}).f32({4});
  EXPECT_EQ(wrong.check(Opcode::add, {wrong.f.f32({5})}), "add: result is f32[5], operands give f32[4] [add C1]");
  Case missing;
  missing.f32({4}).f32({4});
  EXPECT_EQ(missing.check(Opcode::compare, {}), "compare: attribute 'comparison_direction' is missing [compare I3]");
  EXPECT_EQ(Case().f32({}).f32({4}).f32({4}).check(Opcode::select, {}),
            "select: selects by f32[], expected pred [select I1]");
  Case bits;
  bits.f32({4});
  EXPECT_EQ(bits.check(Opcode::bitcast_convert, {bits.f.t(ElementType::kU8, {4, 3})}),
            "bitcast_convert: cannot view f32[4] as u8[4,3] [bitcast_convert C1]");
}

TEST(Rules, Movement) {
  Case broadcast;
  OpId op = broadcast.f32({3}).op(Opcode::broadcast_in_dim, {broadcast.f.f32({2, 4})});
  broadcast.f.m.setInts(op, AttrKey::broadcast_dimensions, {1});
  EXPECT_EQ(broadcast.check(),
            "broadcast_in_dim: dimension 0 of f32[3] does not stretch to dimension 1 of f32[2,4] [broadcast_in_dim C5]");
  Case transpose;
  op = transpose.f32({3, 4}).op(Opcode::transpose, {transpose.f.f32({4, 3})});
  transpose.f.m.setInts(op, AttrKey::permutation, {1, 1});
  EXPECT_EQ(transpose.check(), "transpose: permutation [1, 1] names a dimension twice [transpose C2]");
  Case slice;
  op = slice.f32({8}).op(Opcode::slice, {slice.f.f32({4})});
  slice.f.m.setInts(op, AttrKey::start_indices, {4});
  slice.f.m.setInts(op, AttrKey::limit_indices, {9});
  slice.f.m.setInts(op, AttrKey::strides, {1});
  EXPECT_EQ(slice.check(), "slice: [4:9:1] does not fit dimension 0 of f32[8] [slice C3]");
  Case pad;
  op = pad.f32({8}).f32({}).op(Opcode::pad, {pad.f.f32({8})});
  pad.f.m.setInts(op, AttrKey::edge_padding_low, {INT64_MAX});
  pad.f.m.setInts(op, AttrKey::edge_padding_high, {INT64_MAX});
  pad.f.m.setInts(op, AttrKey::interior_padding, {0});
  EXPECT_EQ(pad.check(), "pad: padding makes dimension 0 too large [pad C4]");
  Case concat;
  op = concat.f32({8, 2}).f32({8, 3}).op(Opcode::concatenate, {concat.f.f32({16, 2})});
  concat.f.m.setInt(op, AttrKey::dimension, 0);
  EXPECT_EQ(concat.check(), "concatenate: joins f32[8,2] and f32[8,3] [concatenate C2]");
}

TEST(Rules, GatherAndScatter) {
  auto gather = [](llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> result) {
    Case c;
    OpId op = c.f32({5, 3}).s32({2, 1}).op(Opcode::gather, {c.f.f32(result)});
    c.f.m.setInts(op, AttrKey::offset_dims, {1});
    c.f.m.setInts(op, AttrKey::collapsed_slice_dims, {0});
    c.f.m.setInts(op, AttrKey::start_index_map, {0});
    c.f.m.setInt(op, AttrKey::index_vector_dim, 1);
    c.f.m.setInts(op, AttrKey::slice_sizes, sizes);
    return c.check();
  };
  EXPECT_EQ(gather({1, 3}, {2, 3}), "");
  EXPECT_EQ(gather({1, 3}, {3, 2}), "gather: result is f32[3,2], operands give f32[2,3] [gather C22]");
  EXPECT_EQ(gather({2, 3}, {2, 3}), "gather: slice of 2 does not fit dimension 0 of f32[5,3] [gather C9]");
  Case c;
  OpId op = c.f32({5, 3}).s32({2, 1}).f32({2, 4}).op(Opcode::scatter, {c.f.f32({5, 3})});
  c.f.m.setInts(op, AttrKey::update_window_dims, {1});
  c.f.m.setInts(op, AttrKey::inserted_window_dims, {0});
  c.f.m.setInts(op, AttrKey::scatter_dims_to_operand_dims, {0});
  c.f.m.setInt(op, AttrKey::index_vector_dim, 1);
  c.f.b.combinerRegion(op, Opcode::add, ElementType::kF32);
  EXPECT_EQ(c.check(), "scatter: updates of f32[2,4] do not fit indices s32[2,1] into f32[5,3] [scatter C4]");
}

TEST(Rules, DotConvolutionReduce) {
  Case dot;
  OpId op = dot.f32({4, 8}).f32({7, 2}).op(Opcode::dot_general, {dot.f.f32({4, 2})});
  dot.f.m.setInts(op, AttrKey::lhs_contracting_dimensions, {1});
  dot.f.m.setInts(op, AttrKey::rhs_contracting_dimensions, {0});
  EXPECT_EQ(dot.check(), "dot_general: pairs dimension 1 of f32[4,8] with dimension 0 of f32[7,2] [dot_general C10]");
  Case conv;
  op = conv.f32({1, 8, 3}).f32({3, 2, 4}).op(Opcode::convolution, {conv.f.f32({1, 6, 4})});
  for (AttrKey key : {AttrKey::input_batch_dimension, AttrKey::output_batch_dimension})
    conv.f.m.setInt(op, key, 0);
  for (AttrKey key : {AttrKey::input_feature_dimension, AttrKey::output_feature_dimension,
                      AttrKey::kernel_output_feature_dimension})
    conv.f.m.setInt(op, key, 2);
  conv.f.m.setInt(op, AttrKey::kernel_input_feature_dimension, 1);
  for (AttrKey key : {AttrKey::feature_group_count, AttrKey::batch_group_count}) conv.f.m.setInt(op, key, 1);
  conv.f.m.setInts(op, AttrKey::input_spatial_dimensions, {1});
  conv.f.m.setInts(op, AttrKey::kernel_spatial_dimensions, {0});
  conv.f.m.setInts(op, AttrKey::output_spatial_dimensions, {1});
  EXPECT_EQ(conv.check(), "convolution: input has 3 features in 1 groups, the kernel takes 2 [convolution C14]");
  Case reduce;
  op = reduce.f32({4}).s32({}).op(Opcode::reduce, {reduce.f.f32({})});
  reduce.f.m.setInts(op, AttrKey::dimensions, {0});
  reduce.f.b.combinerRegion(op, Opcode::add, ElementType::kF32);
  EXPECT_EQ(reduce.check(), "reduce: init value is s32[] for an operand of f32[4] [reduce C2]");
}

TEST(Rules, Collectives) {
  auto gather = [](std::vector<int64_t> ids, int64_t cols, llvm::ArrayRef<int64_t> result) {
    Case c;
    c.f.m.num_partitions = 8;
    OpId op = c.f32({4}).op(Opcode::all_gather, {c.f.f32(result)});
    Groups groups;
    groups.cols = cols;
    groups.rows = static_cast<int64_t>(ids.size()) / cols;
    groups.ids = std::move(ids);
    c.f.m.setGroups(op, AttrKey::replica_groups, groups);
    c.f.m.setInt(op, AttrKey::all_gather_dim, 0);
    return c.check();
  };
  EXPECT_EQ(gather({0, 1, 2, 3}, 2, {8}), "");
  EXPECT_EQ(gather({0, 1, 2, 3}, 4, {8}), "all_gather: result is f32[8], operands give f32[16] [all_gather C6]");
  EXPECT_EQ(gather({0, 1, 1, 3}, 2, {8}), "all_gather: replica_groups name device 1 twice [all_gather C2]");
  EXPECT_EQ(gather({0, 8}, 2, {8}), "all_gather: replica_groups name device 8 of 8 [all_gather C4]");
  Case permute;
  permute.f32({4});
  permute.f.b.create(Opcode::collective_permute, permute.in, {permute.f.f32({4})});
  OpId op = permute.f.m.region(permute.f.b.region()).ops.back();
  permute.f.m.setGroups(op, AttrKey::source_target_pairs, {2, 2, {0, 1, 2, 1}});
  EXPECT_EQ(permute.check(), "collective_permute: two sources send to device 1 [collective_permute C3]");
}

TEST(Verify, Structure) {
  Main unended;
  unended.b.unary(Opcode::abs, unended.arg(unended.f32({})));
  EXPECT_EQ(unended.check(), "region ends in abs, expected return");

  Main early;
  ValueId x = early.arg(early.f32({}));
  OpId first = early.b.create(Opcode::negate, {x}, {early.f32({})});
  ValueId later = early.b.unary(Opcode::abs, x);
  early.m.op(first).operands[0] = later;
  early.finish({});
  EXPECT_EQ(early.check(), "negate: operand is not defined here");

  Main twice;
  ValueId y = twice.b.unary(Opcode::abs, twice.arg(twice.f32({})));
  twice.m.region(twice.b.region()).ops.push_back(twice.m.value(y).def);
  twice.finish({});
  EXPECT_EQ(twice.check(), "abs stands in two places");

  Main returns;
  ValueId z = returns.arg(returns.f32({}));
  returns.m.funcs[0].result_types = {returns.s32({})};
  returns.b.yield({z});
  EXPECT_EQ(returns.check(), "function @main returns other types than it states");

  EXPECT_EQ(complaint(verify(Module())), "the program has no function");
}

TEST(Verify, ShardingsAndLocalTypes) {
  Main f;
  f.m.stage = Stage::kSpmd;
  Mesh mesh;
  mesh.axes = {{"x", 4}};
  f.m.meshes.push_back(mesh);
  Sharding s;
  s.mesh = MeshId(0);
  s.dims.resize(1);
  s.dims[0].axes.push_back({0, 1, 4});
  ValueId x = f.arg(f.f32({3}));
  f.finish({x});
  Port& port = f.m.funcs[0].arg_ports[0];
  port.sharding = f.m.internSharding(s);
  port.global_type = f.f32({10});
  EXPECT_EQ(f.check(), "");  // ceil(10 / 4)
  f.m.funcs[0].arg_ports[0].global_type = f.f32({16});
  EXPECT_EQ(f.check(), "argument 0 holds f32[3] per device, its sharding of f32[16] gives f32[4]");
  s.dims[0].axes.push_back({0, 2, 2});
  f.m.funcs[0].arg_ports[0].sharding = f.m.internSharding(s);
  EXPECT_EQ(f.check(), "sharding uses axis 'x' twice; no axis is left");
}

}  // namespace
}  // namespace tpu::hlo
