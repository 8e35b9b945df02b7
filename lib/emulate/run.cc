// A whole run: chips in turns, the end of it, and what is to be said when there is none.
//
// A message that leaves a chip at T reaches its neighbours at T + hop and others at T + 2 hop or later. Up to the
// earliest of these times a chip sees nothing of the others and may run by itself, on any thread. Where there
// are fewer threads than chips, they take turns in two groups in which few are neighbours: each turn then
// spans two hops, and the host's caches are filled with a chip's state half as often. What a chip does depends
// on its messages and their times alone (arrivals come before anything else of the same time, in the order of
// their senders), so that turns change nothing but the time a run takes.
#include <algorithm>
#include <limits>

#include "args.h"
#include "stats.h"
#include "tpu/support/diagnostics.h"
#include "tpu/support/parallel.h"

namespace tpu::emulate {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kSkewNanoseconds = 50000;

uint64_t mix(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

class Runner {
 public:
  Runner(const isa::Program& program, const RunOptions& options) : program_(program), options_(options) {}

  llvm::Expected<RunResult> run(llvm::ArrayRef<HostTensor> args) {
    const bool loads = !options_.timing_only || !args.empty();
    if (loads)
      if (auto e = checkArguments(program_, args)) return e;
    if (auto e = build()) return e;
    loadDevices(machine_, chips_, args);
    if (auto e = simulate()) return e;
    if (machine_.strict)
      if (auto e = checkClean()) return e;
    RunResult result;
    if (auto e = gatherStats(machine_, chips_, &result)) return e;
    if (!options_.timing_only) {
      auto results = collectResults(machine_, chips_);
      if (!results) return results.takeError();
      result.results = std::move(*results);
    }
    return result;
  }

 private:
  llvm::Error build() {
    auto target = target::targetFromDocument(program_.target, program_.chip_json);
    if (!target) return target.takeError();
    machine_.target = std::move(*target);
    const target::Chip& chip = machine_.target.chip;
    if (program_.devices < 1 || program_.devices > machine_.target.numDevices())
      return fail(Code::kEmuMissingTarget, "",
                  "the program runs on " + llvm::Twine(program_.devices) + " devices, " + program_.target +
                      " has " + llvm::Twine(machine_.target.numDevices()));
    const Mode mode = options_.timing_only ? Mode::kTiming : options_.strict ? Mode::kStrict : Mode::kPlain;
    auto decoded = decode(program_, chip, mode);
    if (!decoded) return decoded.takeError();
    decoded_ = std::move(*decoded);
    machine_.program = &program_;
    machine_.code = &decoded_;
    machine_.mode = mode;
    machine_.strict = mode == Mode::kStrict;
    machine_.trace = options_.trace;
    machine_.hop_ticks = std::max<int64_t>(1, machine_.nanoseconds(chip.ici_hop_ns));
    machine_.latency_ticks = machine_.nanoseconds(chip.dma_latency_ns);
    machine_.done_ticks = machine_.nanoseconds(chip.dma_done_ns);
    machine_.hbm_bytes = hbmExtent(chip);
    for (int32_t c = 0; c < machine_.target.numChips(); ++c)
      chips_.push_back(std::make_unique<ChipSim>(machine_, c));
    std::vector<std::vector<int64_t>> devices(chips_.size());  // of each chip
    for (int64_t d = 0; d < program_.devices; ++d) {
      const int64_t place = program_.device_order.empty() ? d : program_.device_order[static_cast<size_t>(d)];
      const int64_t c = place / chip.devicesPerChip();
      machine_.chip_of.push_back(static_cast<int32_t>(c));
      machine_.core_of.push_back(static_cast<int32_t>(devices[static_cast<size_t>(c)].size()));
      devices[static_cast<size_t>(c)].push_back(d);
    }
    parallelFor(chips_.size(), [&](size_t c) {
      for (const int64_t d : devices[c]) chips_[c]->addCore(d).pending = options_.start_skew ? startOf(d) : 0;
    });
    return checkPlaces();
  }

  // Memory that the program has placed something in; a program that does not say gets all of it.
  int64_t hbmExtent(const target::Chip& chip) const {
    if (program_.hbm_bytes == 0) return chip.hbmUsablePerDevice();
    int64_t top = program_.hbm_bytes;
    const auto port = [&](const isa::SignaturePort& p) {
      if (p.space == isa::Space::kHbm)
        top = std::max(top, p.address + isa::layoutBytes(p.layout, p.element, p.local_dims));
    };
    for (const auto& p : program_.args) port(p);
    for (const auto& p : program_.results) port(p);
    for (const auto& c : program_.constants)
      if (c.space == isa::Space::kHbm) top = std::max(top, c.address + static_cast<int64_t>(c.bytes.size()));
    return std::min(top, chip.hbmUsablePerDevice());
  }

  llvm::Error checkPlaces() const {
    const auto check = [&](llvm::StringRef what, isa::Space space, int64_t at, int64_t bytes,
                           llvm::StringRef loc) -> llvm::Error {
      const int64_t have = chips_.front()->memoryBytes(space);
      if (at >= 0 && at + bytes <= have) return llvm::Error::success();
      return fail(Code::kEmuBounds, loc,
                  what + " lies at bytes " + llvm::Twine(at) + " to " + llvm::Twine(at + bytes) + " of " +
                      isa::spaceName(space) + ", which has " + llvm::Twine(have),
                  ExitStatus::kDoesNotFit);
    };
    for (const auto* ports : {&program_.args, &program_.results})
      for (const auto& p : *ports)
        if (auto e = check("'" + p.name + "'", p.space, p.address,
                           isa::layoutBytes(p.layout, p.element, p.local_dims), p.loc))
          return e;
    for (const auto& c : program_.constants)
      if (auto e = check("a constant", c.space, c.address, static_cast<int64_t>(c.bytes.size()), ""))
        return e;
    return check("the device table", isa::Space::kSmem, isa::kDeviceTableAddress,
                 program_.device_table_words * 4, "");
  }

  int64_t startOf(int64_t device) const {
    const auto cycles = static_cast<uint64_t>(static_cast<__int128>(kSkewNanoseconds) *
                                              machine_.target.chip.clock_hz / 1000000000);
    return static_cast<int64_t>(mix(options_.skew_seed * 0x100000001b3ull + static_cast<uint64_t>(device)) %
                                (cycles + 1));
  }

  llvm::Error simulate() {
    planTurns();
    while (true) {
      const int64_t next = earliest();
      if (next == kNever) break;
      if (options_.max_cycles > 0 && next / kTicksPerCycle > options_.max_cycles)
        return fail(Code::kEmuHang, "",
                    "the run has not ended after " + llvm::Twine(options_.max_cycles) + " cycles",
                    ExitStatus::kHangs);
      if (const Fault* fault = firstFault(); fault && fault->cycle * kTicksPerCycle < next) break;
      for (const auto& chips : turns_) turn(chips);
    }
    if (const Fault* fault = firstFault()) return report(*fault);
    return checkHalted();
  }

  int64_t earliest() const {
    int64_t next = kNever;
    for (const auto& chip : chips_) next = std::min(next, chip->nextTime());
    return next;
  }

  // Neighbours of every chip, and the groups that take turns: a chip joins the first one that holds fewer of
  // its neighbours.
  void planTurns() {
    neighbours_.resize(chips_.size());
    for (size_t c = 0; c < chips_.size(); ++c)
      for (int link = 0; link < machine_.target.chip.ici_links; ++link) {
        const int64_t other = target::neighbour(machine_.target, static_cast<int64_t>(c), link);
        if (other >= 0 && !llvm::is_contained(neighbours_[c], other)) neighbours_[c].push_back(other);
      }
    const bool thread_each = options_.threads > 1 && static_cast<size_t>(options_.threads) >= chips_.size();
    turns_.resize(thread_each || chips_.size() == 1 ? 1 : 2);
    std::vector<size_t> turn_of(chips_.size(), turns_.size());
    for (size_t c = 0; c < chips_.size(); ++c) {
      std::array<int, 2> met{};
      for (const int64_t n : neighbours_[c])
        if (turn_of[static_cast<size_t>(n)] < turns_.size()) ++met[turn_of[static_cast<size_t>(n)]];
      turn_of[c] = turns_.size() == 2 && met[1] < met[0];
      turns_[turn_of[c]].push_back(c);
    }
  }

  // The time before which nothing of the other chips, or of an answer to what it sends itself, reaches a chip.
  int64_t horizon(size_t chip, int64_t earliest_of_all) const {
    if (chips_.size() == 1) return kNever;
    int64_t near = kNever;
    for (const int64_t n : neighbours_[chip]) near = std::min(near, chips_[static_cast<size_t>(n)]->nextTime());
    return std::min(near == kNever ? kNever : near + machine_.hop_ticks,
                    earliest_of_all + 2 * machine_.hop_ticks);
  }

  void turn(llvm::ArrayRef<size_t> group) {
    struct Stint {
      ChipSim* chip;
      int64_t end;
    };
    llvm::SmallVector<Stint, 16> stints;
    const int64_t next = earliest();
    if (next == kNever) return;
    for (const size_t c : group)
      if (const int64_t end = horizon(c, next); chips_[c]->nextTime() < end)
        stints.push_back({chips_[c].get(), end});
    if (options_.threads > 1 && stints.size() > 1) {
      parallelFor(stints.size(), [&](size_t i) { stints[i].chip->runUntil(stints[i].end); });
    } else {
      for (const Stint& s : stints) s.chip->runUntil(s.end);
    }
    for (const Stint& s : stints) {
      for (Message& m : s.chip->outbox) chips_[static_cast<size_t>(m.to_chip)]->receive(std::move(m));
      s.chip->outbox.clear();
    }
  }

  const Fault* firstFault() const {
    const Fault* first = nullptr;
    for (const auto& chip : chips_)
      if (chip->faulted() && (!first || chip->fault().cycle < first->cycle)) first = &chip->fault();
    return first;
  }

  llvm::Error report(const Fault& fault) const {
    std::string where = "device " + std::to_string(fault.device) + ", bundle " + std::to_string(fault.pc);
    if (fault.pc < decoded_.bundles.size())
      where += " of " + decoded_.kernels[decoded_.bundles[fault.pc].kernel];
    where += ", cycle " + std::to_string(fault.cycle) + ": " + fault.text;
    const std::string loc = fault.loc < program_.locs.size() ? program_.locs[fault.loc] : "";
    return fail(fault.code, loc, where, fault.hang ? ExitStatus::kHangs : ExitStatus::kRefused);
  }

  // Nothing can happen any more: every core must have come to its end.
  llvm::Error checkHalted() const {
    Diagnostic d;
    int waiting = 0;
    for (const auto& chip : chips_)
      for (const auto& core : chip->cores) {
        if (core->state == Core::State::kHalted) continue;
        const Op& op = core->pendingOp();
        const std::string loc = op.loc < program_.locs.size() ? program_.locs[op.loc] : "";
        if (waiting++ == 0) {
          d.code = Code::kEmuHang;
          d.exit = ExitStatus::kHangs;
          d.loc = loc;
          d.text = chip->describeWait(*core);
        } else if (waiting <= 8) {
          Diagnostic note;
          note.severity = Severity::kNote;
          note.code = Code::kEmuHang;
          note.loc = loc;
          note.text = chip->describeWait(*core);
          d.notes.push_back(std::move(note));
        }
      }
    if (waiting == 0) return llvm::Error::success();
    d.text = std::to_string(waiting) + " of " + std::to_string(program_.devices) +
             " devices wait for ever: " + d.text;
    return fail(std::move(d));
  }

  llvm::Error checkClean() const {
    for (const auto& chip : chips_)
      for (size_t i = 0; i < chip->cores.size(); ++i) {
        const Core& core = *chip->cores[i];
        const auto& device = chip->devices[i];
        const std::string where = "device " + std::to_string(core.device) + ": ";
        for (size_t s = 0; s < device.semaphores.size(); ++s)
          if (device.semaphores[s])
            return fail(Code::kEmuLeftOver, "",
                        where + "semaphore " + llvm::Twine(s) + " is " + llvm::Twine(device.semaphores[s]) +
                            " at the end");
        for (const TransferPtr& t : device.owners)
          return fail(Code::kEmuLeftOver, t->loc < program_.locs.size() ? program_.locs[t->loc] : "",
                      where + "the transfer started by device " + llvm::Twine(t->source_device) +
                          " at bundle " + llvm::Twine(t->pc) + " has not been awaited");
        for (const Fifo& f : core.fifos)
          if (f.count)
            return fail(Code::kEmuLeftOver, "", where + llvm::Twine(f.count) + " entries are left in a FIFO");
      }
    return llvm::Error::success();
  }

  const isa::Program& program_;
  const RunOptions options_;
  Machine machine_;
  Decoded decoded_;
  Chips chips_;
  std::vector<llvm::SmallVector<int64_t, 6>> neighbours_;  // by chip
  std::vector<std::vector<size_t>> turns_;                 // chips
};

}  // namespace

llvm::Expected<RunResult> run(const isa::Program& program, llvm::ArrayRef<HostTensor> args,
                              const RunOptions& options) {
  return Runner(program, options).run(args);
}

}  // namespace tpu::emulate
