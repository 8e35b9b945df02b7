// Failed assertions, exhausted memory, bad accesses and stack overflow, on a stack of the handler's own.
#include "common/crash.h"

#include <csignal>
#include <cstring>
#include <initializer_list>
#include <new>
#include <unistd.h>

#include "tpu/support/exit_status.h"

namespace tpu {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;  // the sanitizer has a better report
#else
constexpr bool kSanitized = false;
#endif

const char* tool_name = "";
alignas(16) char handler_stack[32 * 1024];

void say(const char* text) { (void)!::write(2, text, std::strlen(text)); }

// The last resort: what can be large is asked for in words before it is taken (support/host_memory.h).
void onNoMemory() {
  say(tool_name);
  say(": error[TP0013]: the host has no memory left for this work\n");
  ::_exit(static_cast<int>(ExitStatus::kRefused));
}

void onCrash(int signal) {
  say(tool_name);
  say(": error[TP0001]: internal error (");
  say(signal == SIGABRT ? "aborted" : signal == SIGFPE ? "arithmetic fault" : "bad memory access");
  say("): this is a bug of the tool; please report it with the input\n");
  ::_exit(static_cast<int>(ExitStatus::kInternal));
}

}  // namespace

void installCrashHandler(const char* tool) {
  tool_name = tool;
  std::set_new_handler(onNoMemory);
  if (kSanitized) return;
  stack_t stack{};
  stack.ss_sp = handler_stack;
  stack.ss_size = sizeof handler_stack;
  ::sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = onCrash;
  action.sa_flags = SA_ONSTACK;
  for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::sigaction(signal, &action, nullptr);
}

}  // namespace tpu
