// Checks that many op rules share, and the comparison and spelling of types.
#include "check.h"

#include "tpu/hlo/literal.h"

namespace tpu::hlo {

bool compatibleDims(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i] && a[i] != kDynamicDim && b[i] != kDynamicDim) return false;
  return true;
}

bool compatible(const Type& a, const Type& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == TypeKind::kToken) return true;
  if (a.kind == TypeKind::kTuple) return a.elements == b.elements;
  return a.element == b.element && compatibleDims(a.dims, b.dims);
}

std::string typeText(const Module& module, const Type& type) {
  if (type.kind == TypeKind::kToken) return "token";
  std::string text;
  if (type.kind == TypeKind::kTuple) {
    for (TypeId id : type.elements) text += (text.empty() ? "" : ", ") + typeText(module, id);
    return "(" + text + ")";
  }
  return typeText(type.element, type.dims);
}

std::string typeText(const Module& module, TypeId type) {
  return type ? typeText(module, module.type(type)) : std::string("none");
}

std::string listText(llvm::ArrayRef<int64_t> values) {
  std::string text;
  for (int64_t value : values) text += (text.empty() ? "" : ", ") + llvm::itostr(value);
  return "[" + text + "]";
}

void OpCheck::yield(ElementType element, llvm::ArrayRef<int64_t> dims) {
  Type& type = results.emplace_back();
  type.element = element;
  type.dims.assign(dims.begin(), dims.end());
}

llvm::Error OpCheck::failAs(Code code, Label label, const llvm::Twine& text) const {
  const llvm::StringRef name = opInfo(op.opcode).mnemonic;
  const std::string row =
      label.list && isSpecified(op.opcode)
          ? (" [" + name + " " + llvm::Twine(label.list) + llvm::Twine(unsigned{label.number}) + "]").str()
          : std::string();
  return tpu::fail(code, m.loc(op.loc), name + ": " + text + row);
}

llvm::SmallVector<TypeId, 2> OpCheck::yields(size_t i) const {
  llvm::SmallVector<TypeId, 2> types;
  const Region& r = region(i);
  if (r.ops.empty() || m.op(r.ops.back()).opcode != Opcode::return_) return types;
  for (ValueId v : m.op(r.ops.back()).operands) types.push_back(m.value(v).type);
  return types;
}

llvm::Error OpCheck::needTensors(size_t rows) const {
  for (size_t i = 0; i < numIn(); ++i)
    if (in(i).kind != TypeKind::kTensor)
      return fail(I(std::min(i + 1, rows)),
                  "operand " + llvm::Twine(i) + " is " + text(in(i)) + ", expected a tensor");
  return llvm::Error::success();
}

llvm::Error OpCheck::needGiven(size_t count) const {
  if (numOut() != count)
    return fail("expected " + llvm::Twine(count) + " results, found " + llvm::Twine(numOut()));
  for (size_t i = 0; i < count; ++i)
    if (out(i).kind != TypeKind::kTensor) return fail("result " + llvm::Twine(i) + " is no tensor");
  return llvm::Error::success();
}

llvm::Error OpCheck::needStaticResult(size_t result, Label label) const {
  const Type& type = out(result);
  if (!type.encoding.empty() || !llvm::is_contained(type.dims, kDynamicDim)) return llvm::Error::success();
  return fail(label, "result is " + text(type) + ", expected a static shape");
}

llvm::Error OpCheck::needAttr(AttrKey key, Label label) const {
  if (has(key)) return llvm::Error::success();
  return fail(label, "attribute '" + attrName(key) + "' is missing");
}

llvm::Error OpCheck::needRank(size_t operand, int64_t rank, Label label) const {
  if (in(operand).rank() == rank) return llvm::Error::success();
  return fail(label, "operand " + llvm::Twine(operand) + " is " + text(in(operand)) + ", expected rank " +
                         llvm::Twine(rank));
}

llvm::Error OpCheck::needScalarInts(size_t from, Label label) const {
  for (size_t i = from; i < numIn(); ++i)
    if (in(i).rank() != 0 || !isInteger(in(i).element))
      return fail(label, "operand " + llvm::Twine(i) + " is " + text(in(i)) + ", expected an integer scalar");
  return llvm::Error::success();
}

llvm::Error OpCheck::needInRange(AttrKey key, int64_t rank, Label label) const {
  llvm::ArrayRef<int64_t> dims = ints(key);
  for (int64_t dim : dims)
    if (dim < 0 || dim >= rank)
      return fail(label, attrName(key) + " " + listText(dims) + " leaves the rank " + llvm::Twine(rank));
  return llvm::Error::success();
}

llvm::Error OpCheck::needUnique(AttrKey key, Label label) const {
  llvm::ArrayRef<int64_t> dims = ints(key);
  for (size_t i = 1; i < dims.size(); ++i)
    if (llvm::is_contained(dims.take_front(i), dims[i]))
      return fail(label, attrName(key) + " " + listText(dims) + " names a dimension twice");
  return llvm::Error::success();
}

llvm::Error OpCheck::needSorted(AttrKey key, Label label) const {
  llvm::ArrayRef<int64_t> dims = ints(key);
  if (llvm::is_sorted(dims)) return llvm::Error::success();
  return fail(label, attrName(key) + " " + listText(dims) + " is not ascending");
}

llvm::Error OpCheck::needDims(AttrKey key, int64_t rank, Label range, Label unique, bool sorted) const {
  if (auto e = needInRange(key, rank, range)) return e;
  if (sorted)
    if (auto e = needSorted(key, unique)) return e;
  return needUnique(key, unique);
}

llvm::Error OpCheck::needDim(AttrKey key, int64_t rank, Label label) const {
  if (auto e = needAttr(key, label)) return e;
  int64_t dim = num(key);
  if (dim >= 0 && dim < rank) return llvm::Error::success();
  return fail(label, attrName(key) + " = " + llvm::Twine(dim) + " leaves the rank " + llvm::Twine(rank));
}

llvm::Error OpCheck::needLength(AttrKey key, size_t length, Label label) const {
  size_t found = ints(key).size();
  if (found == length) return llvm::Error::success();
  return fail(label,
              attrName(key) + " has " + llvm::Twine(found) + " entries, expected " + llvm::Twine(length));
}

llvm::Error OpCheck::needSameDims(size_t a, size_t b, Label label) const {
  if (compatibleDims(in(a).dims, in(b).dims)) return llvm::Error::success();
  return fail(label, "operands " + llvm::Twine(a) + " and " + llvm::Twine(b) +
                         " differ in shape: " + text(in(a)) + " and " + text(in(b)));
}

llvm::Error OpCheck::needSameElement(size_t a, size_t b, Label label) const {
  if (in(a).element == in(b).element) return llvm::Error::success();
  return fail(label, "operands " + llvm::Twine(a) + " and " + llvm::Twine(b) +
                         " differ in element type: " + text(in(a)) + " and " + text(in(b)));
}

llvm::Error OpCheck::needSameKind(Label label) const {
  const ElementType a = in(0).element, b = in(1).element;
  if (a == b || elementClass(a) == elementClass(b) || (isInteger(a) && isInteger(b))) return llvm::Error::success();
  return fail(label, "operands differ in element type: " + text(in(0)) + " and " + text(in(1)));
}

llvm::Error OpCheck::needKeptElement(Label label) const {
  if (in(0).element == out(0).element) return llvm::Error::success();
  return fail(label, "changes the element type from " + text(in(0)) + " to " + text(out(0)));
}

llvm::Error OpCheck::needToken(size_t operand, Label label) const {
  if (in(operand).kind == TypeKind::kToken) return llvm::Error::success();
  return fail(label, "operand " + llvm::Twine(operand) + " is " + text(in(operand)) + ", expected a token");
}

llvm::Error OpCheck::needPositive(AttrKey key, Label label) const {
  for (int64_t value : ints(key))
    if (value <= 0) return fail(label, attrName(key) + " " + listText(ints(key)) + " must be positive");
  return llvm::Error::success();
}

llvm::Error OpCheck::needPrecisions(Label label) const {
  const Attr* precision = m.findAttr(id, AttrKey::precision_config);
  if (!precision || precision->strs.size() <= 2) return llvm::Error::success();
  return fail(label, "precision_config has " + llvm::Twine(precision->strs.size()) + " entries, expected 2");
}

bool isScalarOf(const Type& type, ElementType element) {
  return type.kind == TypeKind::kTensor && type.rank() == 0 && type.element == element;
}

bool promotable(ElementType from, ElementType to) {
  if (from == to) return true;
  if (isFloat(from) || isFloat(to)) return isFloat(from) && isFloat(to);
  return isComplex(from) == isComplex(to) && elementBits(from) <= elementBits(to);
}

llvm::Error OpCheck::needReducer(size_t index, size_t count, Label label,
                                 llvm::SmallVectorImpl<ElementType>& elements) const {
  const Region& r = region(index);
  if (r.args.size() != 2 * count)
    return fail(label, "region takes " + llvm::Twine(r.args.size()) + " arguments, expected " +
                           llvm::Twine(2 * count));
  for (ValueId arg : r.args)
    if (m.typeOf(arg).kind != TypeKind::kTensor || m.typeOf(arg).rank() != 0)
      return fail(label, "region argument is " + text(m.typeOf(arg)) + ", expected a scalar");
  llvm::SmallVector<TypeId, 2> types = yields(index);
  if (types.size() != count)
    return fail(label,
                "region yields " + llvm::Twine(types.size()) + " values, expected " + llvm::Twine(count));
  for (size_t i = 0; i < count; ++i) {
    const Type& type = m.type(types[i]);
    for (size_t side : {i, count + i})
      if (!compatible(type, m.typeOf(r.args[side])))
        return fail(label,
                    "region yields " + text(type) + " for an argument of " + text(m.typeOf(r.args[side])));
    if (i < numIn() && in(i).encoding.empty() && !promotable(in(i).element, type.element))
      return fail(label, "region folds " + text(type) + " for an operand of " + text(in(i)));
    elements.push_back(type.element);
  }
  return llvm::Error::success();
}

llvm::Error OpCheck::needShapeOperand(size_t operand, size_t length, Label type, Label size) const {
  const Type& shape = in(operand);
  if (shape.rank() != 1 || !isInteger(shape.element))
    return fail(type,
                "operand " + llvm::Twine(operand) + " is " + text(shape) + ", expected a vector of integers");
  if (shape.dims[0] == kDynamicDim || shape.dims[0] == static_cast<int64_t>(length))
    return llvm::Error::success();
  return fail(size, "operand " + llvm::Twine(operand) + " is " + text(shape) + ", expected " +
                        llvm::Twine(length) + " entries");
}

llvm::Error OpCheck::needResultShape(size_t operand, Label type, Label size) const {
  if (auto e = needShapeOperand(operand, out(0).dims.size(), type, size)) return e;
  const auto shape = constantInts(operand);
  if (!shape || compatibleDims(*shape, out(0).dims)) return llvm::Error::success();
  return fail(size, "result is " + text(out(0)) + ", the shape asked for " + listText(*shape));
}

std::optional<llvm::SmallVector<int64_t, 6>> OpCheck::constantInts(size_t operand) const {
  const OpId def = m.value(op.operands[operand]).def;
  if (!def || m.op(def).opcode != Opcode::constant || !isInteger(in(operand).element)) return std::nullopt;
  const Attr* value = m.findAttr(def, AttrKey::value);
  const int64_t count = in(operand).numElements();
  if (!value || !value->literal || count > 64) return std::nullopt;
  llvm::SmallVector<int64_t, 6> found;
  for (int64_t i = 0; i < count; ++i)
    found.push_back(loadInt(in(operand).element, literalElement(m, m.literal(value->literal), i)));
  return found;
}

}  // namespace tpu::hlo
