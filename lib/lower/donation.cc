#include "donation.h"

#include <algorithm>

namespace tpu::lower {
namespace {

using llo::Stmt;
using llo::StmtKind;

bool sameMap(const llo::PipelineBlock& a, const llo::PipelineBlock& b) {
  if (a.step != b.step || a.transfers.size() != b.transfers.size()) return false;
  for (size_t i = 0; i < a.transfers.size(); ++i) {
    const llo::Transfer &x = a.transfers[i], &y = b.transfers[i];
    if (x.hbm_offset != y.hbm_offset || x.run != y.run || x.run_edge_grid != y.run_edge_grid || x.run_edge != y.run_edge)
      return false;
    for (int k = 0; k < 3; ++k)
      if (x.dims[k].count != y.dims[k].count || x.dims[k].hbm_stride != y.dims[k].hbm_stride ||
          x.dims[k].edge_grid != y.dims[k].edge_grid || x.dims[k].edge_count != y.dims[k].edge_count)
        return false;
  }
  return true;
}

// What the driver's outermost statements do with one argument and the result that would take its place.
class Sharing {
 public:
  Sharing(const llo::Module& m, int32_t argument, int32_t result) : m_(m), argument_(argument), result_(result) {}

  bool possible() {
    const llo::Block& body = m_.driver.body;
    for (size_t i = 0; i < body.size() && !refused_; ++i) {
      if (isWholeCopy(i)) {
        if (written_ && !copying_) refused_ = true;  // something else stands in the result already
        written_ = copying_ = true;
        copies_.push_back(i++);  // and its wait
        continue;
      }
      reads_ = writes_ = in_place_ = false;
      visit(body[i], /*nested=*/false);
      if (reads_ && (written_ || (writes_ && !in_place_))) refused_ = true;
      written_ |= writes_;
      copying_ &= !writes_;
    }
    return !refused_ && sending_.empty();
  }
  // Statements that copy the argument onto itself once storage is shared, ascending; each with the wait behind it.
  llvm::ArrayRef<size_t> copies() const { return copies_; }

 private:
  bool isWholeCopy(size_t i) const {
    const llo::Block& body = m_.driver.body;
    if (body[i].kind != StmtKind::kDma || i + 1 == body.size()) return false;
    const llo::Dma& d = m_.driver.dmas[body[i].index];
    const Stmt& wait = body[i + 1];
    return !d.remote && is(d.src, argument_) && is(d.dst, result_) && d.src.regs.empty() && d.dst.regs.empty() &&
           d.src.offset == d.dst.offset && d.totalBytes() == d.run && d.src_sem < 0 && wait.kind == StmtKind::kSemWait &&
           wait.index == d.dst_sem && !wait.amount.is_reg && wait.amount.imm == d.run;
  }
  static bool is(const llo::Place& p, int32_t buffer) { return p.kind == llo::Place::kBuffer && p.index == buffer; }

  void visit(const Stmt& s, bool nested) {
    for (const llo::Block& b : s.blocks)
      for (const Stmt& inner : b) visit(inner, true);
    if (s.kind == StmtKind::kCall) call(s, nested);
    if (s.kind == StmtKind::kDma) dma(m_.driver.dmas[s.index]);
    if (s.kind == StmtKind::kPseudo && s.pseudo == llo::PseudoKind::kHbmRow && (s.index == argument_ || s.index == result_))
      refused_ = true;  // the address may go anywhere
    if (s.kind == StmtKind::kSemWait && llvm::is_contained(sending_, s.index)) {
      reads_ = true;  // the transfer read until now
      llvm::erase(sending_, s.index);
    }
  }

  void dma(const llo::Dma& d) {
    if (is(d.src, argument_)) {
      reads_ = true;
      sending_.push_back(d.src_sem >= 0 ? d.src_sem : d.dst_sem);
    }
    if (!is(d.dst, result_)) return;
    writes_ = true;
    refused_ |= d.remote;  // another device writes when it likes
  }

  void call(const Stmt& s, bool nested) {
    const llo::Kernel& kernel = m_.kernels[s.index];
    llvm::SmallVector<const llo::PipelineBlock*, 2> in, out;
    bool moved = false;
    for (const llo::PipelineBlock& b : kernel.blocks) {
      const llo::CallArg& arg = s.args[b.param];
      if (!arg.is_buffer || (arg.buffer != argument_ && arg.buffer != result_)) continue;
      moved |= arg.offset.is_reg || arg.offset.imm != 0;
      (b.direction == llo::Direction::kOut ? out : in).push_back(&b);
    }
    const bool reads = llvm::any_of(in, [&](const llo::PipelineBlock* b) { return s.args[b->param].buffer == argument_; });
    reads_ |= reads;
    writes_ |= !out.empty();
    if (!reads || out.empty()) return;
    // Each step reads its part before it writes the same one, and no step comes back to it.
    in_place_ = !nested && !moved && out.size() == 1;
    for (const llo::PipelineBlock* b : in) in_place_ = in_place_ && sameMap(*b, *out[0]);
    for (size_t g = 0; g < kernel.grid.size(); ++g) in_place_ = in_place_ && (kernel.grid[g] == 1 || out[0]->step[g] != 0);
  }

  const llo::Module& m_;
  int32_t argument_, result_;
  std::vector<size_t> copies_;
  llvm::SmallVector<int32_t, 2> sending_;  // semaphores of transfers that read the argument
  bool written_ = false, copying_ = false, refused_ = false;
  bool reads_ = false, writes_ = false, in_place_ = false;  // of the present statement
};

bool fits(const llo::Buffer& argument, const llo::Buffer& result) {
  return argument.space == isa::Space::kHbm && result.space == isa::Space::kHbm && argument.bytes == result.bytes && result.alias < 0;
}

bool share(llo::Module& m, int32_t argument, int32_t result) {
  if (!fits(m.buffers[argument], m.buffers[result])) return false;
  Sharing sharing(m, argument, result);
  if (!sharing.possible()) return false;
  m.buffers[result].alias = argument;
  llo::Block& body = m.driver.body;
  llvm::ArrayRef<size_t> copies = sharing.copies();
  for (size_t i = copies.size(); i-- > 0;)
    body.erase(body.begin() + static_cast<ptrdiff_t>(copies[i]), body.begin() + static_cast<ptrdiff_t>(copies[i]) + 2);
  return true;
}

}  // namespace

void shareDonated(llo::Module& m, llvm::ArrayRef<bool> donated) {
  if (!m.companions.empty()) return;  // they run beside any statement
  for (const llo::Port& arg : m.args)
    if (arg.signature.alias >= 0) share(m, arg.buffer, m.results[arg.signature.alias].buffer);
  for (size_t a = 0; a < m.args.size(); ++a) {
    if (!donated[a] || m.args[a].signature.alias >= 0) continue;
    for (const llo::Port& result : m.results)
      if (share(m, m.args[a].buffer, result.buffer)) break;
  }
}

}  // namespace tpu::lower
