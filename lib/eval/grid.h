// Processes of interpreter.run_parallel: each runs a function of its own, they meet in collectives, send and
// recv, and read one infeed queue.
//
// One process runs at a time, until it has to wait or ends; then the next one that can go on does, in
// ascending order. So prints, the infeed and all results are the same in every run, and a wait that nobody
// can end is seen at once.
#pragma once
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "interpreter.h"

namespace tpu::eval {

class Grid {
 public:
  Grid(int64_t replicas, int64_t partitions, std::vector<std::string> infeed);
  int64_t replicas() const { return replicas_; }
  int64_t partitions() const { return partitions_; }

  /// Runs body(d) for every process and returns when all have ended.
  void run(llvm::function_ref<void(int64_t)> body);

  /// What all members of a group bring to a collective, by device. `key` tells collectives of the group
  /// apart. None where a member can never come.
  using Brought = std::map<int64_t, LaneList>;
  std::shared_ptr<const Brought> meet(const DeviceGroup& members, const std::string& key, int64_t me,
                                      LaneList mine);

  void send(int64_t channel, LaneList values);
  /// None where nobody can ever send.
  std::optional<LaneList> receive(int64_t channel, int64_t me);

  /// The function whose result infeed gives next; empty where the queue is empty.
  std::string nextInfeed();

 private:
  enum class State : uint8_t { kReady, kWaiting, kDone };
  struct Meeting {
    std::shared_ptr<Brought> brought = std::make_shared<Brought>();
    std::vector<int64_t> waiting;
  };
  // Lets others run until this process is ready again; false where nobody can run.
  bool wait(int64_t me, std::unique_lock<std::mutex>& lock);
  void passOn(int64_t from);

  const int64_t replicas_, partitions_;
  std::vector<std::string> infeed_;
  size_t infed_ = 0;
  std::mutex mutex_;
  std::condition_variable turned_;
  int64_t turn_ = 0;  // the process that runs
  bool stuck_ = false;
  std::vector<State> states_;
  std::map<std::pair<DeviceGroup, std::string>, Meeting> meetings_;
  struct Channel {
    std::vector<LaneList> sent;
    std::vector<int64_t> waiting;
  };
  std::map<int64_t, Channel> channels_;
};

}  // namespace tpu::eval
