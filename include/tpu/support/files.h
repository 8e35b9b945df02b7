// Reading and writing whole files as a Unix filter must: "-" is stdin or stdout, zstd is recognised by its first bytes,
// and output appears complete or not at all. Errors carry kIoError (exit 6), kBadCompression or kEmptyInput.
#pragma once
#include <memory>
#include <string>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace tpu {

struct Input {
  std::string name;   // the path as given, "<stdin>" for "-"
  std::string bytes;  // decompressed
};

/// Largest decompressed input that is accepted, in bytes: a guard against zip bombs, not a limit of documents.
inline constexpr uint64_t kMaxInputBytes = uint64_t{16} << 30;

/// Reads all of `path` ("-" or "": stdin), decompressing zstd. No bytes at all is kEmptyInput.
llvm::Expected<Input> readInput(llvm::StringRef path);

bool isZstd(llvm::StringRef bytes);
/// All frames of `bytes`, at most `limit` bytes; `name` is the location of errors.
llvm::Expected<std::string> zstdDecompress(llvm::StringRef bytes, llvm::StringRef name, uint64_t limit = kMaxInputBytes);
/// One frame with a checksum; the same bytes for the same input on every host.
std::string zstdCompress(llvm::StringRef bytes, int level = 3);

enum class OutputKind {
  kDocument,  // never goes to a terminal
  kText,      // may be read on a terminal
};

/// An output that is written in one go by commit(): to a regular file through a temporary file beside it and a rename,
/// to anything else (stdout, a pipe, /dev/null) directly. Without commit() nothing is left behind.
class OutputFile {
 public:
  /// `path` "-" or "" is stdout. A document for a terminal is refused here, before any work is done.
  static llvm::Expected<OutputFile> open(llvm::StringRef path, OutputKind kind, bool compress = false);
  llvm::raw_ostream& os() { return *stream_; }
  /// Writes what was streamed so far. A reader that closed the pipe gives Code::kClosedPipe with ExitStatus::kOk.
  llvm::Error commit();

 private:
  OutputFile() = default;
  std::string path_;
  bool compress_ = false;
  std::unique_ptr<std::string> buffer_;
  std::unique_ptr<llvm::raw_string_ostream> stream_;
};

/// open, write, commit in one call.
llvm::Error writeOutput(llvm::StringRef path, llvm::StringRef bytes, OutputKind kind, bool compress = false);

}  // namespace tpu
