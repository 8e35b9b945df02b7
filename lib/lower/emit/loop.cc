// Elementwise kernels.
#include <algorithm>

#include "kernel_body.h"
#include "tpu/support/diagnostics.h"

namespace tpu::lower {
namespace emit {
namespace {

// Rank 0: every operand is a word in SMEM.
void emitScalars(const LoopSpec& spec, Vec& e) {
  llo::CodeBuilder& b = e.code();
  std::vector<Val> out = evaluate(e, spec.nodes, spec.outputs, false, [&](const ExprNode& n) {
    if (n.kind == ExprNode::kIota) return Val::of(e.bits(0));
    return Val::of(extractLow(e, n.type, e.splatParam(n.index)));
  });
  for (size_t i = 0; i < out.size(); ++i) {
    const ElementType type = spec.nodes[spec.outputs[i]].type;
    V v = asVector(e, out[i]);
    if (type == ElementType::kBF16) v = (I{&e, v} >> 16u).v;
    else if (elementBits(type) < 32 && type != ElementType::kPred) v = (I{&e, v} & ((1u << elementBits(type)) - 1)).v;
    b.emit(Opcode::vtos, {v});
    const S word = b.s(Opcode::spop, {});
    const S address = b.param(static_cast<int>(spec.inputs.size() + i));
    b.emit(Opcode::sst, {Addr{address, 0}, word});
  }
}

void emitBody(const LoopSpec& spec, const SpaceMap& map, Vec& e, KernelBody& body, int unroll) {
  llvm::SmallVector<int, 6> order;
  for (int a = 0; a < static_cast<int>(body.space().axes.size()); ++a) order.push_back(a);
  body.nest(order, unroll, [&](const UnitAt& at) {
    UnitEvaluator unit(e, body, spec, map, at);
    const int n = body.space().registers();
    std::vector<std::vector<V>> results(spec.outputs.size());
    for (int j = 0; j < n; ++j) {
      std::vector<Val> out = unit.evaluateRegister(j, false);
      for (size_t i = 0; i < out.size(); ++i) results[i].push_back(asVector(e, out[i]));
    }
    size_t i = 0;
    for (const TiledArray& a : body.space().arrays)
      if (a.output) storeUnit(e, body.space(), a, at.spots[&a - body.space().arrays.data()], results[i++]);
  });
}

}  // namespace
}  // namespace emit

using namespace emit;

llvm::Expected<llo::Kernel> emitLoop(const LoopSpec& spec, const target::Chip& chip, const std::string& name) {
  llo::Kernel kernel;
  kernel.name = name;
  addParams(kernel, spec, /*outputs=*/true);
  Vec e(kernel.code, chip);
  if (spec.shape.empty()) {
    emitScalars(spec, e);
    e.finish();
    return kernel;
  }
  SpaceMap map;
  TileSpace space = isFlat(spec) && !looksAtWholeRegisters(spec) ? makeFlatSpace(spec) : makeSpace(spec, {}, &map);
  const int unroll = unrollFor(spec, chip, space.registers());
  if (llvm::Error error = fitBlocks(space, chip, unroll, 0, name)) return error;
  space.buildPipeline(kernel);
  kernel.vmem_budget = 2 * space.placeBlocks();
  KernelBody body(e, space);
  emitBody(spec, map, e, body, unroll);
  e.finish();
  return kernel;
}

}  // namespace tpu::lower
