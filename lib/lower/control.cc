// Control flow runs in the driver. Carried values of a loop and results of a branch have buffers of their own; a value that
// nobody else reads lends its buffer instead of being copied.
#include <cassert>

#include "lowering.h"
#include "tpu/hlo/analysis.h"

namespace tpu::lower {

using HloOp = hlo::Opcode;

int32_t Lowering::ownBuffer(hlo::ValueId like) {
  return isScalar(like) ? scalarBuffer(typeOf(like).element) : tempBuffer(typeOf(like).element, typeOf(like).dims);
}

llvm::Error Lowering::copyValue(hlo::ValueId from, int32_t to) {
  if (isScalar(from)) {
    auto word = scalar(from);
    if (!word) return word.takeError();
    if (*word != to) storeScalar(to, loadScalar(*word));
    return llvm::Error::success();
  }
  auto src = form(from);
  if (!src) return src.takeError();
  if (*src != to) flatCopy(*src, to, out_.buffers[to].bytes);
  return llvm::Error::success();
}

llvm::Error Lowering::lowerWhile(hlo::OpId id) {
  hlo::Op op = m_.op(id);
  std::vector<int32_t> carry;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    hlo::ValueId v = op.operands[i];
    bool returned = result_of_[op.results[i].v] >= 0;
    if (!isScalar(v) && !returned) {
      auto init = form(v);
      if (!init) return init.takeError();
      if (mayTake(v, op.parent, *init)) {
        carry.push_back(*init);
        continue;
      }
    }
    carry.push_back(resultBuffer(op.results[i], typeOf(v).dims));
    if (auto err = copyValue(v, carry.back())) return err;
  }
  for (hlo::RegionId r : op.regions)
    for (size_t i = 0; i < carry.size(); ++i) {
      hlo::ValueId arg = m_.region(r).args[i];
      if (isScalar(arg)) scalars_[arg.v] = carry[i];
      else forms_[arg.v].push_back({carry[i], Dims(typeOf(arg).dims.begin(), typeOf(arg).dims.end())});
    }
  double outer_trips = trips_;
  trips_ *= static_cast<double>(hlo::tripCount(m_, id).value_or(1));
  llvm::Error err = llvm::Error::success();
  auto condition = [&]() -> llvm::Expected<llo::P> {
    size_t mark = scopeMark();
    std::vector<hlo::ValueId> results;
    if (auto e = lowerRegion(op.regions[0], &results)) return e;
    auto word = scalar(results[0]);
    if (!word) return word.takeError();
    llo::P p = b_.p(isa::Opcode::scmp_ne, {loadScalar(*word), 0});
    endScope(mark);
    return p;
  };
  auto body = [&]() -> llvm::Error {
    size_t mark = scopeMark();
    std::vector<hlo::ValueId> results;
    if (auto e = lowerRegion(op.regions[1], &results)) return e;
    // All results stand before the first carried buffer is overwritten; those that are carried buffers themselves move aside.
    std::vector<int32_t> from(results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      auto src = isScalar(results[i]) ? scalar(results[i]) : form(results[i]);
      if (!src) return src.takeError();
      from[i] = *src;
    }
    auto move = [&](int32_t src, int32_t dst) {
      if (out_.buffers[dst].space == isa::Space::kSmem) storeScalar(dst, loadScalar(src));
      else flatCopy(src, dst, out_.buffers[dst].bytes);
    };
    for (size_t i = 0; i < results.size(); ++i)
      if (from[i] != carry[i] && llvm::is_contained(carry, from[i])) {
        int32_t aside = ownBuffer(results[i]);
        move(from[i], aside);
        from[i] = aside;
      }
    for (size_t i = 0; i < results.size(); ++i)
      if (from[i] != carry[i]) move(from[i], carry[i]);
    endScope(mark);
    return llvm::Error::success();
  };
  b_.whileLoop(
      [&] {
        auto p = condition();
        if (p) return *p;
        err = llvm::joinErrors(std::move(err), p.takeError());
        return b_.newP();
      },
      [&] { err = llvm::joinErrors(std::move(err), body()); });
  trips_ = outer_trips;
  if (err) return err;
  for (size_t i = 0; i < carry.size(); ++i) addForm(op.results[i], carry[i], typeOf(op.results[i]).dims);
  return llvm::Error::success();
}

llvm::Error Lowering::lowerBranch(hlo::OpId id) {
  hlo::Op op = m_.op(id);
  std::vector<int32_t> outs;
  for (hlo::ValueId v : op.results) outs.push_back(resultBuffer(v, typeOf(v).dims));
  llvm::Error err = llvm::Error::success();
  auto branch = [&](hlo::RegionId region) {
    if (err) return;
    size_t mark = scopeMark();
    std::vector<hlo::ValueId> results;
    err = lowerRegion(region, &results);
    for (size_t i = 0; i < results.size() && !err; ++i) err = copyValue(results[i], outs[i]);
    endScope(mark);
  };
  auto selector = scalar(op.operands[0]);
  if (!selector) return selector.takeError();
  if (op.opcode == HloOp::if_) {
    llo::P p = b_.p(isa::Opcode::scmp_ne, {loadScalar(*selector), 0});
    b_.ifElse(p, [&] { branch(op.regions[0]); }, [&] { branch(op.regions[1]); });
  } else {
    // case: index 0, 1, ...; the last branch takes every other index.
    auto chain = [&](auto&& self, size_t i) -> void {
      if (i + 1 == op.regions.size()) return branch(op.regions[i]);
      llo::P p = b_.p(isa::Opcode::scmp_eq, {loadScalar(*selector), static_cast<int64_t>(i)});
      b_.ifElse(p, [&] { branch(op.regions[i]); }, [&] { self(self, i + 1); });
    };
    chain(chain, 0);
  }
  if (err) return err;
  for (size_t i = 0; i < outs.size(); ++i) addForm(op.results[i], outs[i], typeOf(op.results[i]).dims);
  return llvm::Error::success();
}

}  // namespace tpu::lower
