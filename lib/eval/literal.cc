// Literals and tensors have the same layout; only splats differ.
#include "tpu/eval/literal.h"

#include <cstring>

#include "values.h"

namespace tpu::eval {

HostTensor literalTensor(const hlo::Module& module, hlo::LiteralId literal) {
  const hlo::Literal& l = module.literal(literal);
  const hlo::Type& type = module.type(l.type);
  HostTensor t;
  t.element = type.element;
  t.dims = type.dims;
  if (!l.splat) {
    t.bytes = l.bytes;
    return t;
  }
  t.bytes = HostBuffer::uninitialized(static_cast<size_t>(t.numElements()) * hostBytes(t.element));
  fillWith(t, l.bytes.data());
  return t;
}

std::shared_ptr<HostTensor> literalTensor(const hlo::Module& module, hlo::OpId constant) {
  return std::make_shared<HostTensor>(
      literalTensor(module, module.findAttr(constant, AttrKey::value)->literal));
}

hlo::LiteralId addLiteral(hlo::Module& module, const HostTensor& tensor) {
  const size_t width = hostBytes(tensor.element);
  hlo::Literal l;
  l.type = module.tensorType(tensor.element, tensor.dims);
  l.splat = !tensor.bytes.empty();
  for (size_t i = width; l.splat && i < tensor.bytes.size(); i += width)
    l.splat = std::memcmp(tensor.bytes.data(), tensor.bytes.data() + i, width) == 0;
  l.bytes.assign(tensor.bytes.begin(), l.splat ? tensor.bytes.begin() + width : tensor.bytes.end());
  return module.addLiteral(std::move(l));
}

}  // namespace tpu::eval
