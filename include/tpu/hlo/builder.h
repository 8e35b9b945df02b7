// Making ops: a place, a location, and one call per common operation with its result type inferred.
//
// Where ops go is one of: the end of a region, a position of a region (which moves on with each op), or a
// list that a pass collects in order to replace a region's `ops` in one sweep. The builder asserts what it is
// told: passes only build what they know to be well formed; the verifier runs after.
#pragma once
#include "tpu/hlo/infer.h"
#include "tpu/hlo/module.h"

namespace tpu::hlo {

class Builder {
 public:
  Builder(Module& module, RegionId region, LocId loc = LocId()) : m(module), loc(loc), region_(region) {}

  void atEnd(RegionId region);
  void at(RegionId region, size_t position);
  /// Ops belong to `region` but are only appended to `sink`.
  void into(RegionId region, std::vector<OpId>* sink);
  RegionId region() const { return region_; }

  Module& m;
  LocId loc;  // of the ops made from now on

  // --- any op
  /// Makes an op with stated result types. Its attributes and regions follow through m.set...() and
  /// m.addRegion().
  OpId create(Opcode opcode, llvm::ArrayRef<ValueId> operands, llvm::ArrayRef<TypeId> results);
  /// Makes an op without attributes whose one result type follows from its operands.
  ValueId infer(Opcode opcode, llvm::ArrayRef<ValueId> operands);
  ValueId result(OpId op, size_t i = 0) const { return m.op(op).results[i]; }
  TypeId typeId(ValueId v) const { return m.value(v).type; }
  const Type& type(ValueId v) const { return m.typeOf(v); }

  // --- constants
  ValueId constant(Literal literal);
  ValueId splat(TypeId type, double value);
  ValueId splatInt(TypeId type, int64_t value);
  ValueId scalar(ElementType element, double value) { return splat(m.tensorType(element, {}), value); }
  ValueId scalarInt(ElementType element, int64_t value) { return splatInt(m.tensorType(element, {}), value); }
  ValueId ints(ElementType element, llvm::ArrayRef<int64_t> values);  // 1-d
  ValueId zeros(TypeId type) { return splatInt(type, 0); }
  ValueId ones(TypeId type) { return splatInt(type, 1); }
  /// Identity of maximum (lowest) and minimum (highest).
  ValueId lowest(TypeId type);
  ValueId highest(TypeId type);
  /// Identity of a combining opcode (add, multiply, maximum, minimum, and, or, xor); none for others.
  std::optional<ValueId> identity(Opcode combiner, TypeId type);
  ValueId iota(TypeId type, int64_t dimension);

  // --- elementwise
  ValueId unary(Opcode opcode, ValueId x) { return infer(opcode, {x}); }
  ValueId binary(Opcode opcode, ValueId a, ValueId b) { return infer(opcode, {a, b}); }
  ValueId add(ValueId a, ValueId b) { return binary(Opcode::add, a, b); }
  ValueId subtract(ValueId a, ValueId b) { return binary(Opcode::subtract, a, b); }
  ValueId multiply(ValueId a, ValueId b) { return binary(Opcode::multiply, a, b); }
  ValueId divide(ValueId a, ValueId b) { return binary(Opcode::divide, a, b); }
  ValueId remainder(ValueId a, ValueId b) { return binary(Opcode::remainder, a, b); }
  ValueId minimum(ValueId a, ValueId b) { return binary(Opcode::minimum, a, b); }
  ValueId maximum(ValueId a, ValueId b) { return binary(Opcode::maximum, a, b); }
  /// compare_type follows from the element type.
  ValueId compare(Comparison direction, ValueId a, ValueId b);
  ValueId select(ValueId pred, ValueId on_true, ValueId on_false) {
    return infer(Opcode::select, {pred, on_true, on_false});
  }
  ValueId clamp(ValueId min, ValueId x, ValueId max) { return infer(Opcode::clamp, {min, x, max}); }
  ValueId convert(ValueId x, ElementType element);  // x itself where nothing changes

  // --- movement
  ValueId reshape(ValueId x, llvm::ArrayRef<int64_t> dims);  // x itself where nothing changes
  ValueId broadcastInDim(ValueId x, llvm::ArrayRef<int64_t> dims,
                         llvm::ArrayRef<int64_t> broadcast_dimensions);
  /// A scalar to any shape.
  ValueId broadcastScalar(ValueId x, llvm::ArrayRef<int64_t> dims) { return broadcastInDim(x, dims, {}); }
  ValueId transpose(ValueId x, llvm::ArrayRef<int64_t> permutation);  // x itself for the identity
  ValueId slice(ValueId x, llvm::ArrayRef<int64_t> start, llvm::ArrayRef<int64_t> limit,
                llvm::ArrayRef<int64_t> strides = {});
  /// One dimension cut to [start, limit).
  ValueId sliceDim(ValueId x, int64_t dim, int64_t start, int64_t limit);
  ValueId dynamicSlice(ValueId x, llvm::ArrayRef<ValueId> start, llvm::ArrayRef<int64_t> sizes);
  ValueId dynamicUpdateSlice(ValueId x, ValueId update, llvm::ArrayRef<ValueId> start);
  ValueId pad(ValueId x, ValueId value, llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high,
              llvm::ArrayRef<int64_t> interior = {});
  ValueId concatenate(llvm::ArrayRef<ValueId> xs, int64_t dimension);  // xs[0] itself where it is alone
  ValueId reverse(ValueId x, llvm::ArrayRef<int64_t> dims);

  // --- contraction and reduction
  struct DotDims {
    llvm::ArrayRef<int64_t> lhs_batch, rhs_batch, lhs_contract, rhs_contract;
  };
  ValueId dotGeneral(ValueId a, ValueId b, const DotDims& dims, ElementType result);
  /// Folds `dims` by a two-operand opcode.
  ValueId reduce(ValueId x, ValueId init, llvm::ArrayRef<int64_t> dims, Opcode combiner);
  /// Adds to `op` the region "return combiner(a, b)" over two scalars of the element type.
  void combinerRegion(OpId op, Opcode combiner, ElementType element);
  /// Adds an empty region to `op`.
  RegionId addRegion(OpId op) { return m.addRegion(op, m.region(region_).func); }

  // --- distribution (groups by mesh axes)
  ValueId partitionId() { return infer(Opcode::partition_id, {}); }
  ValueId allReduce(ValueId x, MeshId mesh, llvm::ArrayRef<AxisRef> axes, Opcode combiner);
  ValueId allGather(ValueId x, MeshId mesh, llvm::ArrayRef<AxisRef> axes, int64_t dim);
  ValueId reduceScatter(ValueId x, MeshId mesh, llvm::ArrayRef<AxisRef> axes, int64_t dim, Opcode combiner);
  ValueId allToAll(ValueId x, MeshId mesh, llvm::ArrayRef<AxisRef> axes, int64_t split_dim,
                   int64_t concat_dim);
  /// pairs: source, target, source, target ...
  ValueId collectivePermute(ValueId x, llvm::ArrayRef<int64_t> pairs);

  // --- control
  OpId call(FuncId callee, llvm::ArrayRef<ValueId> operands);
  OpId yield(llvm::ArrayRef<ValueId> values) { return create(Opcode::return_, values, {}); }

 private:
  enum class Mode : uint8_t { kEnd, kAt, kSink };
  OpId place(Opcode opcode, llvm::ArrayRef<ValueId> operands, llvm::ArrayRef<TypeId> results);
  /// Gives an op without results the one that its rule infers.
  ValueId finish(OpId op);

  RegionId region_;
  Mode mode_ = Mode::kEnd;
  size_t position_ = 0;
  std::vector<OpId>* sink_ = nullptr;
};

}  // namespace tpu::hlo
