// Builder: one call per common operation.
#include "tpu/hlo/builder.h"

#include <cassert>

#include "tpu/hlo/literal.h"

namespace tpu::hlo {

void Builder::atEnd(RegionId region) {
  region_ = region;
  mode_ = Mode::kEnd;
}

void Builder::at(RegionId region, size_t position) {
  region_ = region;
  mode_ = Mode::kAt;
  position_ = position;
}

void Builder::into(RegionId region, std::vector<OpId>* sink) {
  region_ = region;
  mode_ = Mode::kSink;
  sink_ = sink;
}

OpId Builder::place(Opcode opcode, llvm::ArrayRef<ValueId> operands, llvm::ArrayRef<TypeId> results) {
  if (mode_ == Mode::kEnd) return m.append(region_, opcode, operands, results, loc);
  if (mode_ == Mode::kAt) return m.insert(region_, position_++, opcode, operands, results, loc);
  OpId op = m.create(region_, opcode, operands, results, loc);
  sink_->push_back(op);
  return op;
}

OpId Builder::create(Opcode opcode, llvm::ArrayRef<ValueId> operands, llvm::ArrayRef<TypeId> results) {
  return place(opcode, operands, results);
}

ValueId Builder::finish(OpId op) {
  llvm::SmallVector<Type, 2> types;
  llvm::Error error = inferTypes(m, op, types);
  assert(!error && "the builder was asked for an op that breaks its rule");
  llvm::consumeError(std::move(error));
  assert(types.size() == 1);
  return m.addResult(op, m.internType(types[0]));
}

ValueId Builder::infer(Opcode opcode, llvm::ArrayRef<ValueId> operands) {
  return finish(place(opcode, operands, {}));
}

// ---------------------------------------------------------------- constants

ValueId Builder::constant(Literal literal) {
  TypeId type = literal.type;
  OpId op = place(Opcode::constant, {}, {type});
  m.setLiteral(op, m.addLiteral(std::move(literal)));
  return result(op);
}

ValueId Builder::splat(TypeId type, double value) {
  return constant(hlo::splatDouble(type, m.type(type).element, value));
}
ValueId Builder::splatInt(TypeId type, int64_t value) {
  return constant(hlo::splatInt(type, m.type(type).element, value));
}

ValueId Builder::ints(ElementType element, llvm::ArrayRef<int64_t> values) {
  return constant(denseInts(m.tensorType(element, {static_cast<int64_t>(values.size())}), element, values));
}

ValueId Builder::lowest(TypeId type) {
  ElementType element = m.type(type).element;
  Literal literal = hlo::splatInt(type, element, 0);
  storeLowest(element, literal.bytes.data());
  return constant(std::move(literal));
}

ValueId Builder::highest(TypeId type) {
  ElementType element = m.type(type).element;
  Literal literal = hlo::splatInt(type, element, 0);
  storeHighest(element, literal.bytes.data());
  return constant(std::move(literal));
}

std::optional<ValueId> Builder::identity(Opcode combiner, TypeId type) {
  bool pred = m.type(type).element == ElementType::kPred;
  switch (combiner) {
    case Opcode::add:
    case Opcode::or_:
    case Opcode::xor_:
      return zeros(type);
    case Opcode::multiply:
      return ones(type);
    case Opcode::and_:
      return splatInt(type, pred ? 1 : -1);
    case Opcode::maximum:
      return lowest(type);
    case Opcode::minimum:
      return highest(type);
    default:
      return std::nullopt;
  }
}

ValueId Builder::iota(TypeId type, int64_t dimension) {
  OpId op = place(Opcode::iota, {}, {type});
  m.setInt(op, AttrKey::iota_dimension, dimension);
  return result(op);
}

// ---------------------------------------------------------------- elementwise

ValueId Builder::compare(Comparison direction, ValueId a, ValueId b) {
  ElementType element = type(a).element;
  CompareType kind = isFloat(element) || isComplex(element) ? CompareType::kFloat
                     : isSigned(element)                    ? CompareType::kSigned
                                                            : CompareType::kUnsigned;
  OpId op = place(Opcode::compare, {a, b}, {});
  m.setInt(op, AttrKey::comparison_direction, static_cast<int64_t>(direction));
  m.setInt(op, AttrKey::compare_type, static_cast<int64_t>(kind));
  return finish(op);
}

ValueId Builder::convert(ValueId x, ElementType element) {
  if (type(x).element == element) return x;
  TypeId to = m.tensorType(element, Dims(type(x).dims));
  return result(place(Opcode::convert, {x}, {to}));
}

// ---------------------------------------------------------------- movement

ValueId Builder::reshape(ValueId x, llvm::ArrayRef<int64_t> dims) {
  if (llvm::ArrayRef<int64_t>(type(x).dims) == dims) return x;
  return result(place(Opcode::reshape, {x}, {m.tensorType(type(x).element, dims)}));
}

ValueId Builder::broadcastInDim(ValueId x, llvm::ArrayRef<int64_t> dims,
                                llvm::ArrayRef<int64_t> broadcast_dimensions) {
  OpId op = place(Opcode::broadcast_in_dim, {x}, {m.tensorType(type(x).element, dims)});
  m.setInts(op, AttrKey::broadcast_dimensions, broadcast_dimensions);
  return result(op);
}

ValueId Builder::transpose(ValueId x, llvm::ArrayRef<int64_t> permutation) {
  bool identity = true;
  for (size_t i = 0; i < permutation.size(); ++i)
    identity = identity && permutation[i] == static_cast<int64_t>(i);
  if (identity) return x;
  OpId op = place(Opcode::transpose, {x}, {});
  m.setInts(op, AttrKey::permutation, permutation);
  return finish(op);
}

ValueId Builder::slice(ValueId x, llvm::ArrayRef<int64_t> start, llvm::ArrayRef<int64_t> limit,
                       llvm::ArrayRef<int64_t> strides) {
  Dims ones(start.size(), 1);
  OpId op = place(Opcode::slice, {x}, {});
  m.setInts(op, AttrKey::start_indices, start);
  m.setInts(op, AttrKey::limit_indices, limit);
  m.setInts(op, AttrKey::strides, strides.empty() ? llvm::ArrayRef<int64_t>(ones) : strides);
  return finish(op);
}

ValueId Builder::sliceDim(ValueId x, int64_t dim, int64_t start, int64_t limit) {
  Dims starts(type(x).dims.size(), 0), limits(type(x).dims);
  starts[static_cast<size_t>(dim)] = start;
  limits[static_cast<size_t>(dim)] = limit;
  return slice(x, starts, limits);
}

ValueId Builder::dynamicSlice(ValueId x, llvm::ArrayRef<ValueId> start, llvm::ArrayRef<int64_t> sizes) {
  llvm::SmallVector<ValueId, 6> operands = {x};
  operands.append(start.begin(), start.end());
  OpId op = place(Opcode::dynamic_slice, operands, {});
  m.setInts(op, AttrKey::slice_sizes, sizes);
  return finish(op);
}

ValueId Builder::dynamicUpdateSlice(ValueId x, ValueId update, llvm::ArrayRef<ValueId> start) {
  llvm::SmallVector<ValueId, 6> operands = {x, update};
  operands.append(start.begin(), start.end());
  return infer(Opcode::dynamic_update_slice, operands);
}

ValueId Builder::pad(ValueId x, ValueId value, llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high,
                     llvm::ArrayRef<int64_t> interior) {
  Dims none(low.size(), 0);
  OpId op = place(Opcode::pad, {x, value}, {});
  m.setInts(op, AttrKey::edge_padding_low, low);
  m.setInts(op, AttrKey::edge_padding_high, high);
  m.setInts(op, AttrKey::interior_padding, interior.empty() ? llvm::ArrayRef<int64_t>(none) : interior);
  return finish(op);
}

ValueId Builder::concatenate(llvm::ArrayRef<ValueId> xs, int64_t dimension) {
  if (xs.size() == 1) return xs[0];
  OpId op = place(Opcode::concatenate, xs, {});
  m.setInt(op, AttrKey::dimension, dimension);
  return finish(op);
}

ValueId Builder::reverse(ValueId x, llvm::ArrayRef<int64_t> dims) {
  OpId op = place(Opcode::reverse, {x}, {});
  m.setInts(op, AttrKey::dimensions, dims);
  return finish(op);
}

// ---------------------------------------------------------------- contraction and reduction

ValueId Builder::dotGeneral(ValueId a, ValueId b, const DotDims& dims, ElementType element) {
  OpId op = place(Opcode::dot_general, {a, b}, {});
  m.setInts(op, AttrKey::lhs_batching_dimensions, dims.lhs_batch);
  m.setInts(op, AttrKey::rhs_batching_dimensions, dims.rhs_batch);
  m.setInts(op, AttrKey::lhs_contracting_dimensions, dims.lhs_contract);
  m.setInts(op, AttrKey::rhs_contracting_dimensions, dims.rhs_contract);
  ValueId value = finish(op);
  m.value(value).type = m.tensorType(element, Dims(type(value).dims));
  return value;
}

void Builder::combinerRegion(OpId op, Opcode combiner, ElementType element) {
  RegionId region = m.addRegion(op, m.region(region_).func);
  TypeId type = m.tensorType(element, {});
  ValueId a = m.addArg(region, type, loc), b = m.addArg(region, type, loc);
  OpId fold = m.append(region, combiner, {a, b}, {type}, loc);
  m.append(region, Opcode::return_, {m.op(fold).results[0]}, {}, loc);
}

ValueId Builder::reduce(ValueId x, ValueId init, llvm::ArrayRef<int64_t> dims, Opcode combiner) {
  OpId op = place(Opcode::reduce, {x, init}, {});
  m.setInts(op, AttrKey::dimensions, dims);
  combinerRegion(op, combiner, type(x).element);
  return finish(op);
}

// ---------------------------------------------------------------- distribution

ValueId Builder::allReduce(ValueId x, MeshId mesh, llvm::ArrayRef<AxisRef> axes, Opcode combiner) {
  OpId op = place(Opcode::all_reduce, {x}, {});
  m.setAxes(op, AttrKey::axes, mesh, axes);
  combinerRegion(op, combiner, type(x).element);
  return finish(op);
}

ValueId Builder::allGather(ValueId x, MeshId mesh, llvm::ArrayRef<AxisRef> axes, int64_t dim) {
  OpId op = place(Opcode::all_gather, {x}, {});
  m.setAxes(op, AttrKey::axes, mesh, axes);
  m.setInt(op, AttrKey::all_gather_dim, dim);
  return finish(op);
}

ValueId Builder::reduceScatter(ValueId x, MeshId mesh, llvm::ArrayRef<AxisRef> axes, int64_t dim,
                               Opcode combiner) {
  OpId op = place(Opcode::reduce_scatter, {x}, {});
  m.setAxes(op, AttrKey::axes, mesh, axes);
  m.setInt(op, AttrKey::scatter_dimension, dim);
  combinerRegion(op, combiner, type(x).element);
  return finish(op);
}

ValueId Builder::allToAll(ValueId x, MeshId mesh, llvm::ArrayRef<AxisRef> axes, int64_t split_dim,
                          int64_t concat_dim) {
  OpId op = place(Opcode::all_to_all, {x}, {});
  m.setAxes(op, AttrKey::axes, mesh, axes);
  m.setInt(op, AttrKey::split_dimension, split_dim);
  m.setInt(op, AttrKey::concat_dimension, concat_dim);
  m.setInt(op, AttrKey::split_count, groupSize(m, op));
  return finish(op);
}

ValueId Builder::collectivePermute(ValueId x, llvm::ArrayRef<int64_t> pairs) {
  Groups groups;
  groups.rows = static_cast<int64_t>(pairs.size() / 2);
  groups.cols = 2;
  groups.ids.assign(pairs.begin(), pairs.end());
  OpId op = place(Opcode::collective_permute, {x}, {});
  m.setGroups(op, AttrKey::source_target_pairs, std::move(groups));
  return finish(op);
}

// ---------------------------------------------------------------- control

OpId Builder::call(FuncId callee, llvm::ArrayRef<ValueId> operands) {
  OpId op = place(Opcode::call, operands, m.func(callee).result_types);
  m.setString(op, AttrKey::callee, m.string(m.func(callee).name));
  return op;
}

}  // namespace tpu::hlo
