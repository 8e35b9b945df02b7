// Texts made from the flag table: the help screens, man pages, completion scripts.
#pragma once
#include "common/tool.h"

namespace tpu {

std::string helpText(const ToolInfo& info, llvm::ArrayRef<Flag> flags, bool all);
/// `prose` is a man page after its title line, in which the lines @NAME@, @SYNOPSIS@, @OPTIONS@, @PASSES@, @EXAMPLES@ and @EXIT@ stand for
/// generated sections.
std::string manPage(const ToolInfo& info, llvm::ArrayRef<Flag> flags, llvm::StringRef prose);
std::string completionScript(const ToolInfo& info, llvm::ArrayRef<Flag> flags, llvm::StringRef shell);

}  // namespace tpu
