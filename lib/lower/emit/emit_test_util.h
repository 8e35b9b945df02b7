// Runs emitted kernels on arrays with the llo interpreter; padding holds garbage.
#pragma once
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tpu/emulate/llo_interpreter.h"
#include "tpu/isa/layout.h"
#include "tpu/lower/spec.h"
#include "tpu/support/float_convert.h"
#include "tpu/support/host_tensor.h"
#include "tpu/target/chip.h"

namespace tpu::lower {

inline target::Chip chipNamed(const std::string& name) {
  auto chip = target::loadChip(name);
  if (!chip) {
    std::string text = llvm::toString(chip.takeError());
    ADD_FAILURE() << text;
    return {};
  }
  return *chip;
}
/// A machine with little of everything: 64x64 matrix units, 256 KiB of VMEM, 8 vector registers, FIFOs of 4.
inline target::Chip tinyChip() {
  target::Chip c = chipNamed("v5e");
  c.name = "tiny";
  c.vmem_bytes = 256 << 10;
  c.vector_regs = 8;
  c.mxus = 4;
  c.mxu_side = 64;
  c.mrf_depth = c.xlu_depth = c.trf_depth = c.eup_depth = c.v2s_depth = 4;
  return c;
}

inline double elementAt(const HostTensor& t, int64_t i) {
  switch (t.element) {
    case ElementType::kF32: return t.data<float>()[i];
    case ElementType::kBF16: return bf16ToF32(t.data<uint16_t>()[i]);
    case ElementType::kS32: return t.data<int32_t>()[i];
    case ElementType::kU32: return t.data<uint32_t>()[i];
    case ElementType::kS8: return t.data<int8_t>()[i];
    default: return t.data<uint8_t>()[i];
  }
}
inline void setElement(HostTensor& t, int64_t i, double x) {
  switch (t.element) {
    case ElementType::kF32: t.data<float>()[i] = static_cast<float>(x); break;
    case ElementType::kBF16: t.data<uint16_t>()[i] = f32ToBf16(static_cast<float>(x)); break;
    case ElementType::kS32: t.data<int32_t>()[i] = static_cast<int32_t>(x); break;
    case ElementType::kU32: t.data<uint32_t>()[i] = static_cast<uint32_t>(static_cast<int64_t>(x)); break;
    case ElementType::kS8: t.data<int8_t>()[i] = static_cast<int8_t>(x); break;
    default: t.data<uint8_t>()[i] = static_cast<uint8_t>(static_cast<int64_t>(x)); break;
  }
}
/// Small whole numbers (halves for floats), all exact in every type.
inline HostTensor randomTensor(ElementType type, llvm::ArrayRef<int64_t> dims, uint32_t seed, int low = -20, int high = 20) {
  HostTensor t(type, dims);
  std::mt19937 rng(seed);
  const bool is_unsigned = isUnsigned(type), pred = type == ElementType::kPred;
  for (int64_t i = 0; i < t.numElements(); ++i) {
    const int x = low + static_cast<int>(rng() % static_cast<uint32_t>(high - low + 1));
    setElement(t, i, pred ? x & 1 : is_unsigned ? std::abs(x) : isFloat(type) ? x * 0.5 : x);
  }
  return t;
}

inline std::vector<uint8_t> layOut(const HostTensor& t, uint32_t garbage = 0xffa5ffa5u) {
  const isa::Layout layout = isa::defaultLayout(t.element, t.dims);
  std::vector<uint8_t> bytes(isa::layoutBytes(layout, t.element, t.dims));
  for (size_t i = 0; i + 4 <= bytes.size(); i += 4) std::memcpy(&bytes[i], &garbage, 4);
  isa::packHost(layout, t.element, t.dims, t.bytes.data(), bytes.data());
  return bytes;
}

/// Runs a kernel with inputs (rank 0: a word of SMEM) and results of the given types and dims.
inline std::vector<HostTensor> runKernel(llvm::Expected<llo::Kernel> kernel, const target::Chip& chip,
                                         const std::vector<HostTensor>& inputs,
                                         const std::vector<std::pair<ElementType, std::vector<int64_t>>>& results) {
  std::vector<HostTensor> out;
  if (!kernel) {
    ADD_FAILURE() << llvm::toString(kernel.takeError());
    return out;
  }
  std::vector<emulate::KernelOperand> operands;
  for (const HostTensor& t : inputs) operands.push_back({layOut(t), 0});
  for (const auto& [type, dims] : results) {
    HostTensor t(type, dims);
    const isa::Layout layout = isa::defaultLayout(type, dims);
    operands.push_back({std::vector<uint8_t>(isa::layoutBytes(layout, type, dims), 0xa5), 0});
  }
  if (llvm::Error e = emulate::interpretKernel(*kernel, chip, operands)) {
    ADD_FAILURE() << llvm::toString(std::move(e));
    return out;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    HostTensor& t = out.emplace_back(results[i].first, results[i].second);
    isa::unpackHost(isa::defaultLayout(t.element, t.dims), t.element, t.dims, operands[inputs.size() + i].bytes.data(), t.bytes.data());
  }
  return out;
}

inline ExprNode inputNode(int index, ElementType type) {
  ExprNode n;
  n.kind = ExprNode::kInput;
  n.index = index;
  n.type = type;
  return n;
}
inline ExprNode iotaNode(int dim, ElementType type) {
  ExprNode n;
  n.kind = ExprNode::kIota;
  n.index = dim;
  n.type = type;
  return n;
}
inline ExprNode constantNode(ElementType type, uint64_t bits) {
  ExprNode n;
  n.kind = ExprNode::kConstant;
  n.type = type;
  n.bits = bits;
  return n;
}
inline ExprNode opNode(hlo::Opcode op, ElementType type, std::initializer_list<int> args, std::string detail = "") {
  ExprNode n;
  n.op = op;
  n.type = type;
  n.args.assign(args.begin(), args.end());
  n.detail = std::move(detail);
  return n;
}

}  // namespace tpu::lower
