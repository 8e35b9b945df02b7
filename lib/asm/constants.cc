// .const SPACE:ADDRESS opens a constant; .u32, .f32, .fill, .base64 and .dma append to it.
#include "directive_context.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "tpu/serial/base64.h"

namespace tpu::assembly {

llvm::Error Directives::constant(const Context& c) {
  auto place = c.cursor.spaceAddress(c.args[0]);
  if (!place) return place.takeError();
  p_.constants.push_back({place->first, place->second, {}});
  constant_open_ = true;
  return llvm::Error::success();
}

void Directives::appendWord(uint32_t word) {
  for (int i = 0; i < 4; ++i) p_.constants.back().bytes.push_back(static_cast<uint8_t>(word >> (8 * i)));
}

llvm::Error Directives::words(const Context& c) {
  for (const Argument& a : c.args) {
    auto n = c.cursor.numberIn(a, INT32_MIN, UINT32_MAX);
    if (!n) return n.takeError();
    appendWord(static_cast<uint32_t>(*n));
  }
  return llvm::Error::success();
}

llvm::Error Directives::floats(const Context& c) {
  for (const Argument& a : c.args) {
    llvm::APFloat value(llvm::APFloat::IEEEsingle());
    auto status = value.convertFromString(a.text, llvm::APFloat::rmNearestTiesToEven);
    if (!status) {
      llvm::consumeError(status.takeError());
      return c.cursor.failAt(a, "expected a number such as 1.5 or 1e-3");
    }
    appendWord(static_cast<uint32_t>(value.bitcastToAPInt().getZExtValue()));
  }
  return llvm::Error::success();
}

llvm::Error Directives::fill(const Context& c) {
  auto count = c.cursor.numberIn(c.args[0], 0, int64_t{1} << 26);
  if (!count) return count.takeError();
  auto word = c.cursor.numberIn(c.args[1], INT32_MIN, UINT32_MAX);
  if (!word) return word.takeError();
  for (int64_t i = 0; i < *count; ++i) appendWord(static_cast<uint32_t>(*word));
  return llvm::Error::success();
}

llvm::Error Directives::base64(const Context& c) {
  auto text = c.cursor.string(c.args[0]);
  if (!text) return text.takeError();
  auto bytes = decodeBase64(*text);
  if (!bytes) return c.cursor.failAt(c.args[0], "not base64");
  auto& to = p_.constants.back().bytes;
  to.insert(to.end(), bytes->begin(), bytes->end());
  return llvm::Error::success();
}

// A transfer descriptor: src=hbm:0, dst=vmem:4096, run=512, and where they differ from 1, 0, none:
// count1=, src_stride1=, dst_stride1= (also 2, 3), src_sem=, dst_sem=, device=.
llvm::Error Directives::dma(const Context& c) {
  uint32_t words[isa::kDmaWords] = {};
  words[isa::kDmaCount1] = words[isa::kDmaCount2] = words[isa::kDmaCount3] = 1;
  words[isa::kDmaDevice] = isa::kThisDevice;
  uint32_t sems[2] = {isa::kNoSemaphore, isa::kNoSemaphore}, spaces[2] = {};
  bool seen[3] = {};
  struct Row {
    const char* key;
    int word;
  };
  static constexpr Row kRows[] = {{"run", isa::kDmaRun},
                                  {"count1", isa::kDmaCount1},
                                  {"src_stride1", isa::kDmaSrcStride1},
                                  {"dst_stride1", isa::kDmaDstStride1},
                                  {"count2", isa::kDmaCount2},
                                  {"src_stride2", isa::kDmaSrcStride2},
                                  {"dst_stride2", isa::kDmaDstStride2},
                                  {"count3", isa::kDmaCount3},
                                  {"src_stride3", isa::kDmaSrcStride3},
                                  {"dst_stride3", isa::kDmaDstStride3},
                                  {"device", isa::kDmaDevice}};
  for (const Argument& a : c.args) {
    Argument key, value;
    if (!LineCursor::splitKey(a, &key, &value)) return c.cursor.failAt(a, "expected key=value");
    if (key.text == "src" || key.text == "dst") {
      auto place = c.cursor.spaceAddress(value);
      if (!place) return place.takeError();
      const bool dst = key.text == "dst";
      seen[dst] = true;
      spaces[dst] = static_cast<uint32_t>(place->first);
      words[dst ? isa::kDmaDstBase : isa::kDmaSrcBase] = static_cast<uint32_t>(place->second / 512);
      words[dst ? isa::kDmaDstOffset : isa::kDmaSrcOffset] = static_cast<uint32_t>(place->second % 512);
      continue;
    }
    auto n = c.cursor.numberIn(value, INT32_MIN, UINT32_MAX);
    if (!n) return n.takeError();
    if (key.text == "src_sem" || key.text == "dst_sem") {
      if (*n < 0 || *n > isa::kNoSemaphore) return c.cursor.failAt(value, "no such semaphore");
      sems[key.text == "dst_sem"] = static_cast<uint32_t>(*n);
      continue;
    }
    const Row* row = llvm::find_if(kRows, [&](const Row& r) { return key.text == r.key; });
    if (row == std::end(kRows)) return c.cursor.failAt(key, "unknown key '" + key.text + "'");
    seen[2] |= row->word == isa::kDmaRun;
    words[row->word] = static_cast<uint32_t>(*n);
  }
  if (!seen[0] || !seen[1] || !seen[2]) return c.cursor.failAt(c.at, "'.dma' needs src=, dst= and run=");
  words[isa::kDmaSpaces] = spaces[0] | spaces[1] << 8;
  words[isa::kDmaSems] = sems[0] | sems[1] << 16;
  for (uint32_t word : words) appendWord(word);
  return llvm::Error::success();
}

}  // namespace tpu::assembly
