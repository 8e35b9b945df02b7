// Live ranges of buffers over the driver. Arguments and constants live all the time; results from their first
// use to the end. What another device writes may change from the moment on that it has been told that this
// one is ready: that happens before the transfers of a collective, and after the last kernel call or local
// copy before them; without any such signal, from the start. A companion holds its buffers from the call that
// carries it until its transfers are waited for. A temporary that is first written inside a loop and used
// nowhere else lives within the loop's body; one that is read there first, or is used outside as well, lives
// over the whole loop.
#include <algorithm>
#include <limits>

#include "place.h"

namespace tpu::schedule {

int32_t storageOf(const llo::Module& module, int32_t buffer) {
  while (module.buffers[buffer].alias >= 0) buffer = module.buffers[buffer].alias;
  return buffer;
}

namespace {

struct Loop {
  int64_t begin, end;
  int parent;
};
struct Use {
  int64_t position;
  int loop;     // innermost, -1
  bool writes;  // writes only
};

class Walker {
 public:
  explicit Walker(const llo::Module& module)
      : module_(module), uses_(module.buffers.size()), always_(module.buffers.size(), 0) {}

  std::vector<LiveRange> run() {
    block(module_.driver.body);
    std::vector<LiveRange> ranges(module_.buffers.size());
    constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
    for (size_t b = 0; b < module_.buffers.size(); ++b) {
      const int32_t s = storageOf(module_, static_cast<int32_t>(b));
      const llo::Role role = module_.buffers[b].role;
      if (role == llo::Role::kArgument || role == llo::Role::kConstant || always_[b]) ranges[s] = {0, kEnd};
    }
    for (size_t b = 0; b < module_.buffers.size(); ++b)
      if (!uses_[b].empty() && ranges[b].begin < 0) ranges[b] = rangeOf(uses_[b]);
    for (size_t b = 0; b < module_.buffers.size(); ++b) {
      LiveRange& r = ranges[storageOf(module_, static_cast<int32_t>(b))];
      if (module_.buffers[b].role == llo::Role::kResult) r = {std::max<int64_t>(r.begin, 0), kEnd};
    }
    return ranges;
  }

 private:
  void use(int32_t buffer, bool writes) {
    uses_[storageOf(module_, buffer)].push_back({position_, loop_, writes});
  }

  void block(const llo::Block& block) {
    for (const llo::Stmt& s : block) stmt(s);
  }

  void stmt(const llo::Stmt& s) {
    ++position_;
    switch (s.kind) {
      case llo::StmtKind::kLoop:
      case llo::StmtKind::kWhile: {
        const int outer = loop_;
        loop_ = static_cast<int>(loops_.size());
        loops_.push_back({position_, 0, outer});
        for (const llo::Block& b : s.blocks) block(b);
        loops_[loop_].end = ++position_;
        loop_ = outer;
        return;
      }
      case llo::StmtKind::kIf:
        for (const llo::Block& b : s.blocks) block(b);
        return;
      case llo::StmtKind::kCall:
        return call(s);
      case llo::StmtKind::kDma:
        return dma(module_.driver.dmas[s.index]);
      case llo::StmtKind::kSemWait:
        return wait(s.index);
      case llo::StmtKind::kDrain:
        return transfers(module_.companions[s.index].step);
      case llo::StmtKind::kSemSignal:
        signalled_ = true;
        return forget([](const Pending& p) { return p.waited; });
      case llo::StmtKind::kPseudo:
        // The address may go anywhere from here.
        if (s.pseudo == llo::PseudoKind::kHbmRow) always_[storageOf(module_, s.index)] = 1;
        return;
      default:
        return;
    }
  }

  void dma(const llo::Dma& d) {
    // A new batch on a semaphore that was waited for: what was pending on it is done.
    forget([&](const Pending& p) { return p.waited && (p.sem == d.src_sem || p.sem == d.dst_sem); });
    place(d.src, d.src_sem);
    if (!d.remote) place(d.src, d.dst_sem);
    if (d.remote && d.dst.kind == llo::Place::kBuffer)
      uses_[storageOf(module_, d.dst.index)].push_back({signalled_ ? quiet_since_ : 0, loop_, false});
    place(d.dst, d.dst_sem);
    if (!d.remote) {
      place(d.dst, d.src_sem);
      quiet_since_ = position_ + 1;
    }
  }

  // Of code that the driver starts and does not wait for: all transfers, as often as it likes.
  void transfers(const llo::Code& code) {
    const int64_t quiet_since = quiet_since_;
    for (const llo::Dma& d : code.dmas) dma(d);
    quiet_since_ = quiet_since;
  }

  void place(const llo::Place& p, int32_t sem) {
    if (p.kind != llo::Place::kBuffer) return;
    use(p.index, false);
    if (sem >= 0) pending_.push_back({storageOf(module_, p.index), sem, false});
  }

  // A transfer holds its buffers until it is waited for.
  void wait(int32_t sem) {
    for (Pending& p : pending_) {
      if (p.sem != sem) continue;
      uses_[p.buffer].push_back({position_, loop_, false});
      p.waited = true;
    }
  }
  template <class F>
  void forget(F&& done) {
    pending_.erase(std::remove_if(pending_.begin(), pending_.end(), done), pending_.end());
  }

  void call(const llo::Stmt& s) {
    quiet_since_ = position_ + 1;
    const llo::Kernel& kernel = module_.kernels[s.index];
    for (size_t i = 0; i < s.args.size(); ++i) {
      if (!s.args[i].is_buffer) continue;
      bool out = false, in = false;
      for (const llo::PipelineBlock& b : kernel.blocks)
        if (b.param == static_cast<int32_t>(i)) (b.direction == llo::Direction::kOut ? out : in) = true;
      use(s.args[i].buffer, out && !in);
    }
    transfers(kernel.code);
    for (int32_t c : s.companions) transfers(module_.companions[c].step);
  }

  LiveRange rangeOf(const std::vector<Use>& uses) const {
    LiveRange r{uses.front().position, uses.front().position};
    int common = uses.front().loop;
    for (const Use& u : uses) {
      r.begin = std::min(r.begin, u.position);
      r.end = std::max(r.end, u.position);
      while (common >= 0 && !contains(common, u.loop)) common = loops_[common].parent;
    }
    // Any loop entered below the innermost common one is covered whole; so is the common one unless written
    // first.
    for (const Use& u : uses)
      for (int l = u.loop; l >= 0 && l != common; l = loops_[l].parent) extend(r, l);
    if (common >= 0 && !uses.front().writes)
      for (int l = common; l >= 0; l = loops_[l].parent) extend(r, l);
    return r;
  }
  void extend(LiveRange& r, int loop) const {
    r.begin = std::min(r.begin, loops_[loop].begin);
    r.end = std::max(r.end, loops_[loop].end);
  }
  bool contains(int outer, int inner) const {
    while (inner >= 0 && inner != outer) inner = loops_[inner].parent;
    return inner == outer;
  }

  struct Pending {
    int32_t buffer, sem;
    bool waited;
  };
  const llo::Module& module_;
  std::vector<std::vector<Use>> uses_;
  std::vector<char> always_;
  std::vector<Loop> loops_;
  std::vector<Pending> pending_;
  int64_t position_ = 0, quiet_since_ = 0;
  bool signalled_ = false;
  int loop_ = -1;
};

}  // namespace

std::vector<LiveRange> bufferRanges(const llo::Module& module) { return Walker(module).run(); }

}  // namespace tpu::schedule
