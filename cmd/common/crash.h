// A tool that meets its own bug ends with exit status 70 and one line that says so, not with a bare signal.
#pragma once
namespace tpu {

/// `tool` must be a string literal: it is used when nothing else can be trusted.
void installCrashHandler(const char* tool);

}  // namespace tpu
