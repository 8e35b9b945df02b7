// What the passes hand on to each other.
#pragma once
#include <optional>

#include "context.h"
#include "emit.h"
#include "expand.h"
#include "machine.h"
#include "tpu/schedule/passes.h"

namespace tpu::schedule {

struct Work {
  explicit Work(State& s) : ctx(s.module, s.chip), machine(s.chip) {}
  Context ctx;
  Machine machine;
  Callees callees;
  std::vector<Func> funcs;  // until bundle
  std::vector<Func>
      unpipelined;  // as before software pipelining, for functions whose registers do not suffice for it
  std::vector<Scheduled> scheduled;  // from bundle on
};

void printFunc(const Func& func, llvm::raw_ostream& os);

}  // namespace tpu::schedule
