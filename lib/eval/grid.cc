// The turns of processes and the places where they meet.
#include "grid.h"

#include <thread>

namespace tpu::eval {

Grid::Grid(int64_t replicas, int64_t partitions, std::vector<std::string> infeed)
    : replicas_(replicas),
      partitions_(partitions),
      infeed_(std::move(infeed)),
      states_(static_cast<size_t>(replicas * partitions), State::kReady) {}

void Grid::run(llvm::function_ref<void(int64_t)> body) {
  std::vector<std::thread> threads;
  for (int64_t me = 0; me < static_cast<int64_t>(states_.size()); ++me)
    threads.emplace_back([&, me] {
      {
        std::unique_lock lock(mutex_);
        turned_.wait(lock, [&] { return turn_ == me; });
      }
      body(me);
      std::unique_lock lock(mutex_);
      states_[me] = State::kDone;
      passOn(me);
    });
  for (std::thread& t : threads) t.join();
}

// The next process that can run gets the turn; where all wait, nobody will ever end their wait.
void Grid::passOn(int64_t from) {
  const int64_t count = static_cast<int64_t>(states_.size());
  const auto find = [&](State state) -> int64_t {
    for (int64_t i = 1; i <= count; ++i)
      if (states_[(from + i) % count] == state) return (from + i) % count;
    return -1;
  };
  int64_t next = find(State::kReady);
  if (next < 0) {
    next = find(State::kWaiting);
    stuck_ = true;
  }
  turn_ = next;
  turned_.notify_all();
}

bool Grid::wait(int64_t me, std::unique_lock<std::mutex>& lock) {
  states_[me] = State::kWaiting;
  passOn(me);
  turned_.wait(lock, [&] { return turn_ == me; });
  const bool released = states_[me] == State::kReady;
  states_[me] = State::kReady;
  return released;
}

std::shared_ptr<const Grid::Brought> Grid::meet(const DeviceGroup& members, const std::string& key,
                                                int64_t me, LaneList mine) {
  std::unique_lock lock(mutex_);
  if (stuck_) return nullptr;
  const auto at = std::make_pair(members, key);
  Meeting& meeting = meetings_[at];
  const std::shared_ptr<Brought> brought = meeting.brought;
  (*brought)[me] = std::move(mine);
  if (brought->size() == members.size()) {
    for (int64_t other : meeting.waiting) states_[other] = State::kReady;
    meetings_.erase(at);
    return brought;
  }
  meeting.waiting.push_back(me);
  return wait(me, lock) ? brought : nullptr;
}

void Grid::send(int64_t channel, LaneList values) {
  std::unique_lock lock(mutex_);
  Channel& c = channels_[channel];
  c.sent.push_back(std::move(values));
  if (c.waiting.empty()) return;
  states_[c.waiting.front()] = State::kReady;
  c.waiting.erase(c.waiting.begin());
}

std::optional<LaneList> Grid::receive(int64_t channel, int64_t me) {
  std::unique_lock lock(mutex_);
  Channel& c = channels_[channel];
  if (c.sent.empty()) {
    if (stuck_) return std::nullopt;
    c.waiting.push_back(me);
    if (!wait(me, lock) || c.sent.empty()) return std::nullopt;
  }
  LaneList values = std::move(c.sent.front());
  c.sent.erase(c.sent.begin());
  return values;
}

std::string Grid::nextInfeed() {
  std::unique_lock lock(mutex_);
  return infed_ < infeed_.size() ? infeed_[infed_++] : "";
}

}  // namespace tpu::eval
