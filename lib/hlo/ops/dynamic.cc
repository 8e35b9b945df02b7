// Rules of operations whose place or shape is known only at run time.
#include "check.h"

namespace tpu::hlo {

llvm::Error ruleDynamicSlice(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  const Type& in = c.in(0);
  if (c.numIn() != 1 + in.dims.size())
    return c.fail("has " + llvm::Twine(c.numIn() - 1) + " start indices for " + c.text(in));
  if (auto e = c.needScalarInts(1)) return e;
  if (auto e = c.needLength(AttrKey::slice_sizes, in.dims.size())) return e;
  Type type = in;
  for (size_t i = 0; i < in.dims.size(); ++i) {
    int64_t size = c.ints(AttrKey::slice_sizes)[i];
    if (size < 0 || (in.dims[i] != kDynamicDim && size > in.dims[i]))
      return c.fail("slice of " + llvm::Twine(size) + " does not fit dimension " + llvm::Twine(i) + " of " +
                    c.text(in));
    type.dims[i] = size;
  }
  c.yield(std::move(type));
  return llvm::Error::success();
}

llvm::Error ruleDynamicUpdateSlice(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  const Type& in = c.in(0);
  const Type& update = c.in(1);
  if (c.numIn() != 2 + in.dims.size())
    return c.fail("has " + llvm::Twine(c.numIn() - 2) + " start indices for " + c.text(in));
  if (auto e = c.needScalarInts(2)) return e;
  bool fits = update.element == in.element && update.rank() == in.rank();
  for (size_t i = 0; fits && i < in.dims.size(); ++i)
    fits = in.dims[i] == kDynamicDim || update.dims[i] == kDynamicDim || update.dims[i] <= in.dims[i];
  if (!fits) return c.fail("update of " + c.text(update) + " does not fit " + c.text(in));
  c.yield(in);
  return llvm::Error::success();
}

// Shapes that come as operands: the stated result type is all that is known.
llvm::Error ruleDynamicShape(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needGiven()) return e;
  if (c.op.opcode != Opcode::dynamic_iota && c.op.opcode != Opcode::dynamic_conv &&
      c.in(0).element != c.out(0).element && c.in(0).encoding.empty())
    return c.fail("changes the element type");
  c.yieldGiven();
  return llvm::Error::success();
}

}  // namespace tpu::hlo
