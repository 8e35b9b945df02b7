// Dependences between the instructions of a block: registers, memory, FIFO order and depth, matrix unit
// state, transfers and semaphores. Everything that the order of execution must respect is an edge; FIFO depth
// too: the entry that would not fit waits for the pop that makes room.
#pragma once
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "machine.h"

namespace tpu::schedule {

/// cycle(to) + distance * II >= cycle(from) + latency. `must` is the part of the latency that order requires
/// (0: the same bundle will do); the rest only avoids a stall.
struct Edge {
  int32_t from, to, latency, distance, must;
};
struct DepGraph {
  std::vector<Edge> edges;
  std::vector<llvm::SmallVector<int32_t, 4>> succ, pred;  // edges by node
};

/// Nodes are the instructions of `code`, then the terminator where there is one. With `loop`, code is the
/// body of a loop and edges between iterations are added; fails (false) where its FIFO use does not balance.
bool buildDeps(llvm::ArrayRef<Insn> code, const Insn* term, const Machine& machine, bool loop,
               DepGraph* graph);

}  // namespace tpu::schedule
