// What an op's rule sees: operands, attributes and results of one op, and a way to refuse it at its location.
#pragma once
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "tpu/hlo/infer.h"
#include "tpu/support/diagnostics.h"

namespace tpu::hlo {

class OpCheck {
 public:
  OpCheck(const Module& module, OpId id) : m(module), id(id), op(module.op(id)) {}

  const Module& m;
  const OpId id;
  const Op& op;
  /// What the rule says; empty accepts the results as given.
  llvm::SmallVector<Type, 2> results;

  size_t numIn() const { return op.operands.size(); }
  const Type& in(size_t i) const { return m.typeOf(op.operands[i]); }
  size_t numOut() const { return op.results.size(); }
  const Type& out(size_t i) const { return m.typeOf(op.results[i]); }
  const Region& region(size_t i) const { return m.region(op.regions[i]); }
  /// The types a region's terminator yields; empty where there is no terminator yet.
  llvm::SmallVector<TypeId, 2> yields(size_t region) const;

  bool has(AttrKey key) const { return m.has(id, key); }
  llvm::ArrayRef<int64_t> ints(AttrKey key) const { return m.getInts(id, key); }
  int64_t num(AttrKey key, int64_t otherwise = 0) const { return m.getInt(id, key, otherwise); }

  void yield(Type type) { results.push_back(std::move(type)); }
  void yield(ElementType element, llvm::ArrayRef<int64_t> dims);
  void yieldGiven() {
    for (size_t i = 0; i < numOut(); ++i) results.push_back(out(i));
  }

  /// "add: text", at the op's location.
  llvm::Error fail(const llvm::Twine& text) const;
  std::string text(const Type& type) const { return typeText(m, type); }

  // --- checks that many rules share
  llvm::Error needTensors() const;                // every operand is a tensor
  llvm::Error needGiven(size_t count = 1) const;  // results must be stated, as tensors
  llvm::Error needAttr(AttrKey key) const;
  llvm::Error needRank(size_t operand, int64_t rank) const;
  llvm::Error needScalarInts(size_t from) const;  // operands from `from` on are integer scalars
  /// Each value lies in [0, rank) and none twice.
  llvm::Error needDims(AttrKey key, int64_t rank, bool sorted = false) const;
  llvm::Error needDim(AttrKey key, int64_t rank) const;
  llvm::Error needLength(AttrKey key, size_t length) const;
  llvm::Error needSameDims(size_t a, size_t b) const;
  /// A region that folds `count` pairs of scalars: 2 * count arguments, `count` yields. `elements` gets the
  /// yielded element types.
  llvm::Error needReducer(size_t region, size_t count, llvm::SmallVectorImpl<ElementType>& elements) const;
};

/// "[1, 2]"
std::string listText(llvm::ArrayRef<int64_t> values);

using OpRule = llvm::Error (*)(OpCheck&);
/// The rule of each opcode (rules.cc); every opcode has one.
OpRule ruleOf(Opcode opcode);

// One function per kind, in the file of its family.
// elementwise.cc
llvm::Error ruleUnary(OpCheck&);
llvm::Error ruleBinary(OpCheck&);
llvm::Error ruleUnaryToPred(OpCheck&);
llvm::Error ruleConvert(OpCheck&);
llvm::Error ruleBitcastConvert(OpCheck&);
llvm::Error ruleRealPart(OpCheck&);
llvm::Error ruleComplex(OpCheck&);
llvm::Error ruleCompare(OpCheck&);
llvm::Error ruleClamp(OpCheck&);
llvm::Error ruleSelect(OpCheck&);
llvm::Error ruleMap(OpCheck&);
llvm::Error ruleReducePrecision(OpCheck&);
llvm::Error ruleChloBroadcast(OpCheck&);
// creation.cc
llvm::Error ruleConstant(OpCheck&);
llvm::Error ruleIota(OpCheck&);
llvm::Error ruleRng(OpCheck&);
llvm::Error ruleRngBitGenerator(OpCheck&);
llvm::Error ruleDeviceId(OpCheck&);
// movement.cc
llvm::Error ruleBroadcast(OpCheck&);
llvm::Error ruleBroadcastInDim(OpCheck&);
llvm::Error ruleReshape(OpCheck&);
llvm::Error ruleTranspose(OpCheck&);
llvm::Error ruleSlice(OpCheck&);
llvm::Error rulePad(OpCheck&);
llvm::Error ruleConcatenate(OpCheck&);
llvm::Error ruleReverse(OpCheck&);
llvm::Error ruleGetDimensionSize(OpCheck&);
llvm::Error ruleSetDimensionSize(OpCheck&);
// dynamic.cc
llvm::Error ruleDynamicSlice(OpCheck&);
llvm::Error ruleDynamicUpdateSlice(OpCheck&);
llvm::Error ruleDynamicShape(OpCheck&);
// indexing.cc
llvm::Error ruleGather(OpCheck&);
llvm::Error ruleScatter(OpCheck&);
llvm::Error ruleTorchIndexSelect(OpCheck&);
// contraction.cc
llvm::Error ruleDotGeneral(OpCheck&);
llvm::Error ruleDot(OpCheck&);
llvm::Error ruleEinsum(OpCheck&);
// convolution.cc
llvm::Error ruleConvolution(OpCheck&);
// reduction.cc
llvm::Error ruleReduce(OpCheck&);
llvm::Error ruleReduceWindow(OpCheck&);
llvm::Error ruleSelectAndScatter(OpCheck&);
llvm::Error ruleSort(OpCheck&);
llvm::Error ruleTopK(OpCheck&);
// linalg.cc
llvm::Error ruleCholesky(OpCheck&);
llvm::Error ruleTriangularSolve(OpCheck&);
llvm::Error ruleFft(OpCheck&);
llvm::Error ruleBatchNorm(OpCheck&);
// control.cc
llvm::Error ruleWhile(OpCheck&);
llvm::Error ruleBranches(OpCheck&);
llvm::Error ruleCall(OpCheck&);
llvm::Error ruleReturn(OpCheck&);
llvm::Error ruleTuple(OpCheck&);
llvm::Error ruleGetTupleElement(OpCheck&);
llvm::Error ruleBarrier(OpCheck&);
llvm::Error ruleToken(OpCheck&);
llvm::Error ruleOpaque(OpCheck&);
// collective.cc
llvm::Error ruleAllReduce(OpCheck&);
llvm::Error ruleAllGather(OpCheck&);
llvm::Error ruleReduceScatter(OpCheck&);
llvm::Error ruleAllToAll(OpCheck&);
llvm::Error ruleCollectivePermute(OpCheck&);
llvm::Error ruleCollectiveBroadcast(OpCheck&);
// partitioning.cc
llvm::Error ruleShardingConstraint(OpCheck&);
llvm::Error ruleManualComputation(OpCheck&);
llvm::Error ruleNamedComputation(OpCheck&);
llvm::Error ruleSameType(OpCheck&);
llvm::Error ruleShardingGroup(OpCheck&);

}  // namespace tpu::hlo
