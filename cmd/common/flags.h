// Flags as data: the one table from which the parser, --help, man pages and completions are made.
//
// A tool's own rows stand in its flags.def, shared rows in shared_flags.def:
//   TPU_FLAG(name, letter, kind, value, otherwise, level, help)
#pragma once
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace tpu {

enum class FlagKind : uint8_t {
  kSwitch,    // --quiet
  kValue,     // --out=FILE or --out FILE; the last one counts
  kList,      // may stand several times
  kOptional,  // --explain or --explain=json; bare means the row's `otherwise`
};

enum class FlagLevel : uint8_t {
  kBrief,   // on --help
  kMore,    // on --help-all and in the man page
  kHidden,  // for the build
};

/// Groups of shared flags; a tool names those it takes.
enum FlagGroup : unsigned {
  kToolFlags = 0,           // the tool's own
  kOutputFlags = 1u << 0,   // -o, --compress, -MD ...
  kEmitFlags = 1u << 1,     // --emit, --only
  kPassFlags = 1u << 2,
  kReportFlags = 1u << 3,
  kTargetFlags = 1u << 4,
  kCommonFlags = 1u << 5,   // always present: diagnostics, threads, help
};

struct Flag {
  llvm::StringLiteral name;    // without dashes
  char letter;                 // one-letter spelling, or 0
  FlagKind kind;
  llvm::StringLiteral value;   // what stands for the value in help; plain words ("a|b|c", or one) are the only ones allowed
  llvm::StringLiteral otherwise;  // default
  FlagLevel level;
  llvm::StringLiteral help;    // sentences; the first one is shown on --help
  FlagGroup group = kToolFlags;
  /// "--name", or "-name" for the compiler-like ones (-MD, -Werror).
  std::string spelling() const;
  /// The allowed values, empty where any text may stand.
  std::vector<llvm::StringRef> choices() const;
};

/// The tool's own rows, then the shared ones of its groups, in table order; a row of the tool replaces a shared one
/// of the same name.
std::vector<Flag> allFlags(llvm::ArrayRef<Flag> own, unsigned groups);

}  // namespace tpu
