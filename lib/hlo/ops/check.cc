// Checks that many op rules share, and the comparison and spelling of types.
#include "check.h"

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

llvm::Error OpCheck::fail(const llvm::Twine& text) const {
  return tpu::fail(Code::kMalformedOp, m.loc(op.loc), opInfo(op.opcode).mnemonic + ": " + text);
}

llvm::SmallVector<TypeId, 2> OpCheck::yields(size_t i) const {
  llvm::SmallVector<TypeId, 2> types;
  const Region& r = region(i);
  if (r.ops.empty() || m.op(r.ops.back()).opcode != Opcode::return_) return types;
  for (ValueId v : m.op(r.ops.back()).operands) types.push_back(m.value(v).type);
  return types;
}

llvm::Error OpCheck::needTensors() const {
  for (size_t i = 0; i < numIn(); ++i)
    if (in(i).kind != TypeKind::kTensor)
      return fail("operand " + llvm::Twine(i) + " is " + text(in(i)) + ", expected a tensor");
  return llvm::Error::success();
}

llvm::Error OpCheck::needGiven(size_t count) const {
  if (numOut() != count)
    return fail("expected " + llvm::Twine(count) + " results, found " + llvm::Twine(numOut()));
  for (size_t i = 0; i < count; ++i)
    if (out(i).kind != TypeKind::kTensor) return fail("result " + llvm::Twine(i) + " is no tensor");
  return llvm::Error::success();
}

llvm::Error OpCheck::needAttr(AttrKey key) const {
  if (has(key)) return llvm::Error::success();
  return fail("attribute '" + attrName(key) + "' is missing");
}

llvm::Error OpCheck::needRank(size_t operand, int64_t rank) const {
  if (in(operand).rank() == rank) return llvm::Error::success();
  return fail("operand " + llvm::Twine(operand) + " is " + text(in(operand)) + ", expected rank " +
              llvm::Twine(rank));
}

llvm::Error OpCheck::needScalarInts(size_t from) const {
  for (size_t i = from; i < numIn(); ++i)
    if (in(i).rank() != 0 || !isInteger(in(i).element))
      return fail("operand " + llvm::Twine(i) + " is " + text(in(i)) + ", expected an integer scalar");
  return llvm::Error::success();
}

llvm::Error OpCheck::needDims(AttrKey key, int64_t rank, bool sorted) const {
  llvm::ArrayRef<int64_t> dims = ints(key);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= rank)
      return fail(attrName(key) + " " + listText(dims) + " leaves the rank " + llvm::Twine(rank));
    for (size_t j = 0; j < i; ++j)
      if (dims[j] == dims[i] || (sorted && dims[j] > dims[i]))
        return fail(attrName(key) + " " + listText(dims) +
                    (sorted ? " is not ascending" : " names a dimension twice"));
  }
  return llvm::Error::success();
}

llvm::Error OpCheck::needDim(AttrKey key, int64_t rank) const {
  if (auto e = needAttr(key)) return e;
  int64_t dim = num(key);
  if (dim >= 0 && dim < rank) return llvm::Error::success();
  return fail(attrName(key) + " = " + llvm::Twine(dim) + " leaves the rank " + llvm::Twine(rank));
}

llvm::Error OpCheck::needLength(AttrKey key, size_t length) const {
  size_t found = ints(key).size();
  if (found == length) return llvm::Error::success();
  return fail(attrName(key) + " has " + llvm::Twine(found) + " entries, expected " + llvm::Twine(length));
}

llvm::Error OpCheck::needSameDims(size_t a, size_t b) const {
  if (compatibleDims(in(a).dims, in(b).dims)) return llvm::Error::success();
  return fail("operands " + llvm::Twine(a) + " and " + llvm::Twine(b) + " differ in shape: " + text(in(a)) +
              " and " + text(in(b)));
}

llvm::Error OpCheck::needReducer(size_t index, size_t count,
                                 llvm::SmallVectorImpl<ElementType>& elements) const {
  const Region& r = region(index);
  if (r.args.size() != 2 * count)
    return fail("region takes " + llvm::Twine(r.args.size()) + " arguments, expected " +
                llvm::Twine(2 * count));
  for (ValueId arg : r.args)
    if (m.typeOf(arg).kind != TypeKind::kTensor || m.typeOf(arg).rank() != 0)
      return fail("region argument is " + text(m.typeOf(arg)) + ", expected a scalar");
  llvm::SmallVector<TypeId, 2> types = yields(index);
  if (types.size() != count)
    return fail("region yields " + llvm::Twine(types.size()) + " values, expected " + llvm::Twine(count));
  for (size_t i = 0; i < count; ++i) {
    const Type& type = m.type(types[i]);
    if (!compatible(type, m.typeOf(r.args[i])))
      return fail("region yields " + text(type) + " for an argument of " + text(m.typeOf(r.args[i])));
    elements.push_back(type.element);
  }
  return llvm::Error::success();
}

}  // namespace tpu::hlo
