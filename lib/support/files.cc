// Whole-file input and all-or-nothing output over POSIX calls, so that every errno reaches the user.
#include "tpu/support/files.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "llvm/Support/Signals.h"
#include "tpu/support/diagnostics.h"

namespace tpu {
namespace {

bool isStd(llvm::StringRef path) { return path.empty() || path == "-"; }

llvm::Error ioError(llvm::StringRef name, llvm::StringRef doing, int error) {
  return fail(Code::kIoError, name, "cannot " + doing + ": " + llvm::StringRef(std::strerror(error)), ExitStatus::kIo);
}

llvm::Expected<std::string> readAll(int fd, llvm::StringRef name) {
  std::string bytes;
  struct stat st;
  // One byte more than the size, so that the read that finds the end needs no growth.
  size_t chunk = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? static_cast<size_t>(st.st_size) + 1 : 1 << 16;
  size_t used = 0;
  while (true) {
    if (bytes.size() - used < chunk) bytes.resize(used + chunk);
    ssize_t got = ::read(fd, bytes.data() + used, bytes.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ioError(name, "read", errno);
    if (got == 0) break;
    used += static_cast<size_t>(got);
    if (used > kMaxInputBytes) return fail(Code::kIoError, name, "input larger than 16 GiB", ExitStatus::kIo);
    chunk = std::max<size_t>(1 << 16, std::min(used, size_t{1} << 26));
  }
  bytes.resize(used);
  return bytes;
}

llvm::Error writeAll(int fd, llvm::StringRef bytes, llvm::StringRef name) {
  while (!bytes.empty()) {
    ssize_t put = ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), 1 << 30));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EPIPE) return fail(Code::kClosedPipe, name, "the reader closed the pipe", ExitStatus::kOk);
    if (put < 0) return ioError(name, "write", errno);
    bytes = bytes.drop_front(static_cast<size_t>(put));
  }
  return llvm::Error::success();
}

llvm::Error writeDirect(llvm::StringRef path, llvm::StringRef bytes) {
  std::string p = path.str();
  int fd = ::open(p.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return ioError(path, "open", errno);
  if (llvm::Error e = writeAll(fd, bytes, path)) {
    ::close(fd);
    return e;
  }
  if (::close(fd) != 0) return ioError(path, "write", errno);
  return llvm::Error::success();
}

/// The file that the path stands for in the end, so that a rename keeps symbolic links.
std::string resolveLinks(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (!real) return path;
  std::string out = real;
  std::free(real);
  return out;
}

llvm::Error writeByRename(llvm::StringRef path, llvm::StringRef bytes, mode_t mode) {
  std::string target = resolveLinks(path.str());
  std::string temp = target + ".tmp" + std::to_string(::getpid());
  int fd = ::open(temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return ioError(path, "create", errno);
  llvm::sys::RemoveFileOnSignal(temp);
  llvm::Error e = writeAll(fd, bytes, path);
  if (::close(fd) != 0 && !e) e = ioError(path, "write", errno);
  if (!e && ::rename(temp.c_str(), target.c_str()) != 0) e = ioError(path, "rename", errno);
  if (e) ::unlink(temp.c_str());
  llvm::sys::DontRemoveFileOnSignal(temp);
  return e;
}

}  // namespace

llvm::Expected<Input> readInput(llvm::StringRef path) {
  Input in;
  in.name = isStd(path) ? "<stdin>" : path.str();
  int fd = isStd(path) ? 0 : ::open(in.name.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ioError(in.name, "open", errno);
  llvm::Expected<std::string> bytes = readAll(fd, in.name);
  if (fd != 0) ::close(fd);
  if (!bytes) return bytes.takeError();
  if (bytes->empty())
    return fail(Code::kEmptyInput, in.name, isStd(path) ? "empty input: the command before this one failed" : "empty file");
  in.bytes = std::move(*bytes);
  if (!isZstd(in.bytes)) return in;
  bytes = zstdDecompress(in.bytes, in.name);
  if (!bytes) return bytes.takeError();
  if (bytes->empty()) return fail(Code::kEmptyInput, in.name, "the compressed input holds no bytes");
  in.bytes = std::move(*bytes);
  return in;
}

llvm::Expected<OutputFile> OutputFile::open(llvm::StringRef path, OutputKind kind, bool compress) {
  if (isStd(path) && (kind == OutputKind::kDocument || compress) && ::isatty(1))
    return fail(Code::kUsageError, "", "a document does not go to a terminal: name a file with -o FILE, or use a pipe",
                ExitStatus::kUsage);
  OutputFile out;
  out.path_ = isStd(path) ? "-" : path.str();
  out.compress_ = compress;
  out.buffer_ = std::make_unique<std::string>();
  out.stream_ = std::make_unique<llvm::raw_string_ostream>(*out.buffer_);
  return out;
}

llvm::Error OutputFile::commit() {
  stream_->flush();
  if (compress_) *buffer_ = zstdCompress(*buffer_);
  if (path_ == "-") return writeAll(1, *buffer_, "<stdout>");
  struct stat st;
  bool exists = ::stat(path_.c_str(), &st) == 0;
  if (exists && S_ISDIR(st.st_mode)) return ioError(path_, "write", EISDIR);
  if (exists && !S_ISREG(st.st_mode)) return writeDirect(path_, *buffer_);
  return writeByRename(path_, *buffer_, exists ? st.st_mode & 0777 : 0666);
}

llvm::Error writeOutput(llvm::StringRef path, llvm::StringRef bytes, OutputKind kind, bool compress) {
  llvm::Expected<OutputFile> out = OutputFile::open(path, kind, compress);
  if (!out) return out.takeError();
  out->os() << bytes;
  return out->commit();
}

}  // namespace tpu
