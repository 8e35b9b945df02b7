// Constants of a module as host tensors and back.
#pragma once
#include <memory>

#include "tpu/hlo/module.h"
#include "tpu/support/host_tensor.h"

namespace tpu::eval {

/// The literal of a constant op, splats spread.
std::shared_ptr<HostTensor> literalTensor(const hlo::Module& module, hlo::OpId constant);
HostTensor literalTensor(const hlo::Module& module, hlo::LiteralId literal);
/// Splat where all elements have the same bytes.
hlo::LiteralId addLiteral(hlo::Module& module, const HostTensor& tensor);

}  // namespace tpu::eval
