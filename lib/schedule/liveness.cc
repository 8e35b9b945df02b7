#include "liveness.h"

#include <algorithm>

namespace tpu::schedule {

llvm::SmallVector<int, 2> successors(const Func& func, int b) {
  const Block& block = func.blocks[b];
  llvm::SmallVector<int, 2> next;
  const int below = b + 1;
  const bool has_below = below < static_cast<int>(func.blocks.size());
  if (!block.has_term || block.term.insn.op == isa::Opcode::call) {
    if (has_below) next.push_back(below);
    return next;
  }
  if (block.term.insn.op != isa::Opcode::br) return next;
  next.push_back(static_cast<int>(labelOf(block.term)));
  if (block.term.insn.pred_virt && has_below) next.push_back(below);
  return next;
}

std::vector<llvm::BitVector> liveOut(const Func& func, const RegIndex& index) {
  const int n = static_cast<int>(func.blocks.size());
  std::vector<llvm::BitVector> uses(n, llvm::BitVector(index.size())), kills = uses, out = uses;
  for (int b = 0; b < n; ++b) {
    auto scan = [&](const Insn& i) {
      // Reads come before writes in one instruction; fixed blocks read before they write in one cycle as
      // well, but there a value written in the same cycle is another one, never the one read.
      forEachVirtual(i, index, [&](int32_t r, bool read, bool write, bool partial) {
        if ((read || (write && partial)) && !kills[b].test(r)) uses[b].set(r);
      });
    };
    auto writes = [&](const Insn& i) {
      forEachVirtual(i, index, [&](int32_t r, bool, bool write, bool partial) {
        if (write && !partial) kills[b].set(r);
      });
    };
    const Block& block = func.blocks[b];
    for (size_t k = 0; k < block.code.size();) {
      size_t end = k + 1;
      while (block.fixed && end < block.code.size() && block.cycle[end] == block.cycle[k]) ++end;
      for (size_t i = k; i < end; ++i) scan(block.code[i]);
      for (size_t i = k; i < end; ++i) writes(block.code[i]);
      k = end;
    }
    if (block.has_term) scan(block.term);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (int b = n; b-- > 0;) {
      llvm::BitVector now(index.size());
      for (int s : successors(func, b)) {
        llvm::BitVector in = out[s];
        in.reset(kills[s]);
        in |= uses[s];
        now |= in;
      }
      if (now == out[b]) continue;
      out[b] = std::move(now);
      changed = true;
    }
  }
  return out;
}

namespace {

class Graph {
 public:
  Graph(const Func& func, const RegIndex& index) : func_(func), index_(index) {
    result_.neighbours.resize(index.size());
    result_.across_call.resize(index.size(), 0);
    result_.cost.resize(index.size(), 0);
    result_.first.resize(index.size(), -1);
    class_of_.resize(index.size());
    for (int32_t r = 0; r < index.size(); ++r) class_of_[r] = static_cast<uint8_t>(index.classOf(r));
  }

  Interference run() {
    const std::vector<llvm::BitVector> out = liveOut(func_, index_);
    int position = 0;
    for (size_t b = 0; b < func_.blocks.size(); ++b) {
      const Block& block = func_.blocks[b];
      double weight = 1;
      for (int d = 0; d < std::min(block.depth, 8); ++d) weight *= 10;
      auto count = [&](const Insn& i) {
        forEachVirtual(i, index_, [&](int32_t r, bool, bool, bool) {
          result_.cost[r] += weight;
          if (result_.first[r] < 0) result_.first[r] = position;
        });
        ++position;
      };
      for (const Insn& i : block.code) count(i);
      if (block.has_term) count(block.term);
      walk(block, out[b]);
    }
    for (auto& list : result_.neighbours) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    return std::move(result_);
  }

 private:
  void define(int32_t r) {
    for (int32_t l : live_list_[class_of_[r]]) {
      if (l == r) continue;
      result_.neighbours[r].push_back(l);
      result_.neighbours[l].push_back(r);
    }
  }
  void add(int32_t r) {
    if (live_.test(r)) return;
    live_.set(r);
    live_list_[class_of_[r]].push_back(r);
  }
  void remove(int32_t r) {
    if (!live_.test(r)) return;
    live_.reset(r);
    auto& list = live_list_[class_of_[r]];
    list.erase(std::find(list.begin(), list.end(), r));
  }

  void walk(const Block& block, const llvm::BitVector& out) {
    live_ = llvm::BitVector(index_.size());
    for (auto& l : live_list_) l.clear();
    for (int r : out.set_bits()) add(r);
    if (block.has_term && block.term.insn.op == isa::Opcode::call)
      for (int r : out.set_bits()) result_.across_call[r] = 1;
    auto reads = [&](const Insn& i) {
      forEachVirtual(i, index_, [&](int32_t r, bool read, bool write, bool partial) {
        if (read || (write && partial)) add(r);
      });
    };
    // The terminator of a fixed block may stand before other instructions; keeping its predicate live to the
    // end is safe.
    if (block.has_term) reads(block.term);
    for (size_t end = block.code.size(); end > 0;) {
      size_t k = end - 1;
      while (block.fixed && k > 0 && block.cycle[k - 1] == block.cycle[end - 1]) --k;
      group(block, k, end, reads);
      end = k;
    }
  }

  template <class Reads>
  void group(const Block& block, size_t begin, size_t end, Reads&& reads) {
    llvm::SmallVector<int32_t, 8> written, killed;
    for (size_t i = begin; i < end; ++i)
      forEachVirtual(block.code[i], index_, [&](int32_t r, bool, bool write, bool partial) {
        if (!write) return;
        written.push_back(r);
        if (!partial) killed.push_back(r);
      });
    for (int32_t r : written) define(r);
    for (size_t a = 0; a < written.size(); ++a)
      for (size_t b = a + 1; b < written.size(); ++b) {
        if (written[a] == written[b] || class_of_[written[a]] != class_of_[written[b]]) continue;
        result_.neighbours[written[a]].push_back(written[b]);
        result_.neighbours[written[b]].push_back(written[a]);
      }
    for (int32_t r : killed) remove(r);
    for (size_t i = begin; i < end; ++i) reads(block.code[i]);
  }

  const Func& func_;
  const RegIndex& index_;
  Interference result_;
  std::vector<uint8_t> class_of_;
  llvm::BitVector live_;
  std::vector<int32_t> live_list_[kNumClasses];
};

}  // namespace

Interference interference(const Func& func, const RegIndex& index) { return Graph(func, index).run(); }

}  // namespace tpu::schedule
