// Branches, the end of a program, and what concerns other actors: transfers and semaphores.
#include "../chip.h"
#include "exec.h"

namespace tpu::emulate {
namespace {

void branch(Core& c, const Op& op, int64_t target) {
  if (c.delay_left > 0) return c.fail(op, tpu::Code::kEmuControl, "a branch in the delay bundles of another");
  if (target < 0 || target >= static_cast<int64_t>(c.code->bundles.size()))
    return c.fail(op, tpu::Code::kEmuControl,
                  "branch to bundle " + llvm::Twine(target) + " of " + llvm::Twine(c.code->bundles.size()));
  c.branch_target = target;
  c.delay_left = c.chip->branch_delay_bundles + 1;
  c.branch_floor = c.t + op.latency;
}

template <bool kStrict>
bool defined(Core& c, const Op& op, uint32_t shadow, const char* what) {
  if constexpr (kStrict) {
    if (shadow) {
      c.fail(op, tpu::Code::kEmuUndefined, llvm::Twine(what) + " is undefined");
      return false;
    }
  }
  return true;
}
template <bool kStrict>
bool semaphoreDefined(Core& c, const Op& op) {
  return (op.sreg == kNoReg || defined<kStrict>(c, op, c.s_shadow[op.sreg], "the semaphore's number")) &&
         (!op.small[1] || defined<kStrict>(c, op, c.s_shadow[op.b], "the amount"));
}

}  // namespace

TPU_EXEC(br) { branch(c, op, op.imm); }
TPU_EXEC(call) {
  branch(c, op, op.imm);
  c.s[op.d] = c.pc + 1 + static_cast<uint32_t>(c.chip->branch_delay_bundles);
  if constexpr (kStrict) c.s_shadow[op.d] = 0;
}
TPU_EXEC(ret) {
  if (defined<kStrict>(c, op, c.s_shadow[op.a], "the address")) branch(c, op, c.s[op.a]);
}
TPU_EXEC(halt) { c.halted = true; }
TPU_EXEC(trap) { c.fail(op, tpu::Code::kEmuTrap, "trap " + llvm::Twine(op.imm)); }

TPU_EXEC(dma_start) {
  if (op.sreg == kNoReg || defined<kStrict>(c, op, c.s_shadow[op.sreg], "the descriptor's address"))
    c.sim->startTransfer(c, op);
}
TPU_EXEC(sem_wait) {
  if (semaphoreDefined<kStrict>(c, op)) c.sim->takeSemaphore(c, op);
}
TPU_EXEC(sem_add) {
  if (semaphoreDefined<kStrict>(c, op)) c.sim->addOwnSemaphore(c, op);
}
TPU_EXEC(sem_signal) {
  if (defined<kStrict>(c, op, c.s_shadow[op.a] | c.s_shadow[op.b] | c.s_shadow[op.c], "an operand"))
    c.sim->signal(c, op);
}
TPU_EXEC(sem_read) {
  if (!semaphoreDefined<kStrict>(c, op)) return;
  c.s[op.d] = c.sim->readSemaphore(c, op);
  if constexpr (kStrict) c.s_shadow[op.d] = 0;
}

}  // namespace tpu::emulate
