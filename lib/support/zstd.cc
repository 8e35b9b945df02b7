// zstd frames in memory: bounded decompression of untrusted bytes, and reproducible compression.
#include <zstd.h>

#include <algorithm>
#include <cassert>

#include "tpu/support/diagnostics.h"
#include "tpu/support/files.h"

namespace tpu {
namespace {
struct FreeStream {
  void operator()(ZSTD_DStream* s) const { ZSTD_freeDStream(s); }
};
}  // namespace

bool isZstd(llvm::StringRef bytes) { return bytes.starts_with("\x28\xb5\x2f\xfd"); }

llvm::Expected<std::string> zstdDecompress(llvm::StringRef bytes, llvm::StringRef name, uint64_t limit) {
  std::unique_ptr<ZSTD_DStream, FreeStream> stream(ZSTD_createDStream());
  std::string out;
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  size_t state = 1;  // 0 exactly at the end of a frame
  bool output_full = false;
  while (in.pos < in.size || output_full) {
    size_t used = out.size();
    out.resize(used + std::max<size_t>(ZSTD_DStreamOutSize(), used / 2));
    ZSTD_outBuffer to{out.data() + used, out.size() - used, 0};
    size_t before = in.pos;
    state = ZSTD_decompressStream(stream.get(), &to, &in);
    out.resize(used + to.pos);
    if (ZSTD_isError(state))
      return fail(Code::kBadCompression, name, llvm::Twine("corrupt zstd data near byte ") + llvm::Twine(before) + ": " +
                                                   ZSTD_getErrorName(state));
    if (out.size() > limit)
      return fail(Code::kBadCompression, name, "decompressed data exceed " + llvm::Twine(limit) + " bytes");
    output_full = to.pos == to.size;
    if (in.pos == before && to.pos == 0) break;
  }
  if (state != 0) return fail(Code::kBadCompression, name, "zstd data end within a frame: the input is truncated");
  return out;
}

std::string zstdCompress(llvm::StringRef bytes, int level) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  size_t n = ZSTD_compress2(context, out.data(), out.size(), bytes.data(), bytes.size());
  ZSTD_freeCCtx(context);
  assert(!ZSTD_isError(n) && "the bound makes room for any input");
  out.resize(n);
  return out;
}

}  // namespace tpu
