// What an op's rule sees: operands, attributes and results of one op, and a way to refuse it at its location,
// named by the constraint of the StableHLO specification that it breaks.
#pragma once
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "tpu/hlo/infer.h"
#include "tpu/support/diagnostics.h"

namespace tpu::hlo {

/// A row of the specification's section of an op: C3 of its constraints, I1 of its inputs, O1 of its outputs.
/// The default names none: the specification does not number what is checked.
struct Label {
  char list = 0;
  uint8_t number = 0;
};
constexpr Label C(size_t number) { return {'C', static_cast<uint8_t>(number)}; }
constexpr Label I(size_t number) { return {'I', static_cast<uint8_t>(number)}; }
constexpr Label O(size_t number) { return {'O', static_cast<uint8_t>(number)}; }
/// True for operations that the specification describes with numbered constraints.
bool isSpecified(Opcode opcode);

class OpCheck {
 public:
  OpCheck(const Module& module, OpId id) : m(module), id(id), op(module.op(id)) {}

  const Module& m;
  const OpId id;
  const Op& op;
  /// What the rule says; empty accepts the results as given.
  llvm::SmallVector<Type, 2> results;
  /// The constraints that define the results' element types, shapes and number.
  Label element_label, shape_label, count_label;

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

  /// Which constraints the results follow from.
  void resultsBy(Label element, Label shape, Label count = {}) {
    element_label = element;
    shape_label = shape;
    count_label = count;
  }

  /// "dynamic_slice: text [dynamic_slice C3]", at the op's location.
  llvm::Error fail(Label label, const llvm::Twine& text) const {
    return failAs(Code::kMalformedOp, label, text);
  }
  llvm::Error failAs(Code code, Label label, const llvm::Twine& text) const;
  llvm::Error fail(const llvm::Twine& text) const { return fail(Label(), text); }
  std::string text(const Type& type) const { return typeText(m, type); }

  // --- checks that many rules share; each takes the constraint that it stands for
  /// Every operand is a tensor. Row i of the inputs is operand i, the last of `rows` stands for all that
  /// follow.
  llvm::Error needTensors(size_t rows = 9) const;
  llvm::Error needGiven(size_t count = 1) const;  // results must be stated, as tensors
  llvm::Error needAttr(AttrKey key, Label label = {}) const;
  /// The result's shape is known: this op has no operand that could say it later.
  llvm::Error needStaticResult(size_t result, Label label) const;
  llvm::Error needRank(size_t operand, int64_t rank, Label label = {}) const;
  llvm::Error needScalarInts(size_t from,
                             Label label = {}) const;  // operands from `from` on are integer scalars
  /// Each value lies in [0, rank), none twice, and ascending where asked.
  llvm::Error needDims(AttrKey key, int64_t rank, Label range, Label unique, bool sorted = false) const;
  llvm::Error needInRange(AttrKey key, int64_t rank, Label label) const;
  llvm::Error needUnique(AttrKey key, Label label) const;
  llvm::Error needSorted(AttrKey key, Label label) const;  // ascending, equal neighbours allowed
  llvm::Error needDim(AttrKey key, int64_t rank, Label label) const;
  llvm::Error needLength(AttrKey key, size_t length, Label label = {}) const;
  llvm::Error needSameDims(size_t a, size_t b, Label label = {}) const;
  llvm::Error needSameElement(size_t a, size_t b, Label label) const;
  /// Operands 0 and 1 hold numbers of one kind. Products of floats of different width (two f8 formats) are what
  /// frameworks print, so widths may differ.
  llvm::Error needSameKind(Label label) const;
  /// The result holds elements of operand 0's type.
  llvm::Error needKeptElement(Label label) const;
  llvm::Error needToken(size_t operand, Label label) const;
  llvm::Error needPositive(AttrKey key, Label label) const;
  /// precision_config has an entry per factor. Lists of fewer are read as the reference implementation reads them.
  llvm::Error needPrecisions(Label label) const;
  /// A region that folds `count` pairs of scalars: 2 * count arguments, `count` yields, of types that the
  /// first `count` operands promote to. `elements` gets the yielded element types.
  llvm::Error needReducer(size_t region, size_t count, Label label,
                          llvm::SmallVectorImpl<ElementType>& elements) const;
  /// A one-dimensional operand of `length` integers that says a shape or amounts per dimension.
  llvm::Error needShapeOperand(size_t operand, size_t length, Label type, Label size) const;
  /// A shape operand of the result: a vector of a size per dimension which, where it is a constant, says the
  /// result's shape.
  llvm::Error needResultShape(size_t operand, Label type, Label size) const;
  /// The integers of an operand that is a constant.
  std::optional<llvm::SmallVector<int64_t, 6>> constantInts(size_t operand) const;
};

/// "[1, 2]"
std::string listText(llvm::ArrayRef<int64_t> values);

/// A tensor of rank 0.
bool isScalarOf(const Type& type, ElementType element);

/// Values of `from` may be handed on as `to`: one kind of number, of no fewer bits (floats of any width).
bool promotable(ElementType from, ElementType to);

using OpRule = llvm::Error (*)(OpCheck&);
/// The rule of each opcode (rules.cc); every opcode has one.
OpRule ruleOf(Opcode opcode);

// One function per kind, in the file of its family.
// elementwise.cc
llvm::Error ruleUnary(OpCheck&);
llvm::Error ruleBinary(OpCheck&);
llvm::Error ruleUnaryToPred(OpCheck&);
llvm::Error ruleConvert(OpCheck&);
llvm::Error ruleConstantLike(OpCheck&);
llvm::Error ruleUniformQuantize(OpCheck&);
llvm::Error ruleUniformDequantize(OpCheck&);
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
/// What broadcast_in_dim and reshape share with their dynamic forms, whose constraints bear the same numbers.
llvm::Error needBroadcast(OpCheck&);
llvm::Error needSameNumber(OpCheck&);
/// What pad and dynamic_pad share: the padding value, and the size that padding gives a dimension.
llvm::Error needPaddingValue(OpCheck&);
__int128 paddedSize(int64_t size, int64_t low, int64_t high, int64_t interior);
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
llvm::Error ruleDynamicIota(OpCheck&);
llvm::Error ruleDynamicBroadcastInDim(OpCheck&);
llvm::Error ruleDynamicReshape(OpCheck&);
llvm::Error ruleDynamicPad(OpCheck&);
llvm::Error ruleRealDynamicSlice(OpCheck&);
// indexing.cc
llvm::Error ruleGather(OpCheck&);
llvm::Error ruleScatter(OpCheck&);
llvm::Error ruleTorchIndexSelect(OpCheck&);
// contraction.cc
llvm::Error ruleDotGeneral(OpCheck&);
llvm::Error ruleDot(OpCheck&);
llvm::Error ruleRaggedDot(OpCheck&);
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
llvm::Error ruleScan(OpCheck&);
llvm::Error ruleOpaque(OpCheck&);
// custom_call.cc
llvm::Error ruleCustomCall(OpCheck&);
llvm::Error ruleEinsum(OpCheck&);
// transfer.cc
llvm::Error ruleInfeed(OpCheck&);
llvm::Error ruleOutfeed(OpCheck&);
llvm::Error ruleSend(OpCheck&);
llvm::Error ruleRecv(OpCheck&);
llvm::Error ruleComposite(OpCheck&);
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
