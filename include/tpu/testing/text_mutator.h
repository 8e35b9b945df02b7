// A mutator for readers of text. Bytes changed at random seldom get past the first word; this one changes words:
// drops, repeats, moves and exchanges them, puts numbers at the edges of their range, drops and repeats lines. Half of
// the time it leaves the work to libFuzzer, which also brings in words of the dictionary. Included by a fuzz target
// once.
#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace tpu::testing {

class TextMutator {
 public:
  TextMutator(llvm::StringRef text, unsigned seed) : random_(seed) {
    const bool lines = pick(4) == 0;
    while (!text.empty()) {
      size_t length = 1;
      if (lines)
        length = std::min(text.find('\n'), text.size() - 1) + 1;
      else if (isWord(text[0]))
        while (length < text.size() && isWord(text[length])) ++length;
      parts_.push_back(text.take_front(length).str());
      text = text.drop_front(length);
    }
  }

  std::string run() {
    for (size_t n = 1 + pick(3); n > 0 && !parts_.empty(); --n) change();
    std::string out;
    for (const std::string& part : parts_) out += part;
    return out;
  }

 private:
  static bool isWord(char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '-'; }
  size_t pick(size_t n) { return random_() % n; }

  void change() {
    const size_t at = pick(parts_.size()), other = pick(parts_.size());
    const auto place = parts_.begin() + static_cast<ptrdiff_t>(at);
    switch (pick(6)) {
      case 0: {  // drop a few
        const size_t count = std::min(1 + pick(6), parts_.size() - at);
        parts_.erase(place, place + static_cast<ptrdiff_t>(count));
        break;
      }
      case 1:
        parts_[at] = parts_[other];
        break;
      case 2:
        std::swap(parts_[at], parts_[other]);
        break;
      case 3: {  // repeat a few elsewhere
        const size_t count = std::min(1 + pick(12), parts_.size() - other);
        const std::vector<std::string> some(parts_.begin() + static_cast<ptrdiff_t>(other),
                                            parts_.begin() + static_cast<ptrdiff_t>(other + count));
        parts_.insert(place, some.begin(), some.end());
        break;
      }
      default:
        changeNumber(at);
    }
  }

  // The next number at or behind a place.
  void changeNumber(size_t at) {
    static constexpr const char* kNumbers[] = {"0", "1", "-1", "2", "3", "4", "7", "8", "16", "127", "128", "255",
                                               "256", "1024", "65536", "2147483647", "2147483648", "4294967295",
                                               "1099511627776", "9223372036854775807", "-9223372036854775808",
                                               "18446744073709551615", "1e999", "0.5", "nan"};
    for (; at < parts_.size(); ++at) {
      if (parts_[at].empty() || !llvm::isDigit(parts_[at][0])) continue;
      parts_[at] = kNumbers[pick(std::size(kNumbers))];
      return;
    }
  }

  std::minstd_rand random_;
  std::vector<std::string> parts_;  // words, or lines
};

}  // namespace tpu::testing

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string out =
      tpu::testing::TextMutator(llvm::StringRef(reinterpret_cast<const char*>(data), size), seed).run();
  const size_t length = std::min(out.size(), max_size);
  std::copy_n(out.begin(), length, data);
  return length;
}
