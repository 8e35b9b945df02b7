// Reading and writing "!quant.uniform<i8<-127:127>:f32:1, {0.1:3,0.2}>".
#include "tpu/hlo/quantized.h"

#include <charconv>

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "tpu/serial/json_writer.h"

namespace tpu::hlo {
namespace {

class Reader {
 public:
  explicit Reader(llvm::StringRef text) : rest_(text) {}
  bool accept(llvm::StringRef s) {
    rest_ = rest_.ltrim();
    return rest_.consume_front(s);
  }
  bool expect(llvm::StringRef s) { return accept(s) || fail("expected '" + s.str() + "'"); }
  std::string word() {
    rest_ = rest_.ltrim();
    const llvm::StringRef w = rest_.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    rest_ = rest_.drop_front(w.size());
    return w.str();
  }
  bool integer(int64_t& value) {
    rest_ = rest_.ltrim();
    const auto [end, status] = std::from_chars(rest_.begin(), rest_.end(), value);
    if (status != std::errc()) return fail("expected an integer");
    rest_ = rest_.drop_front(static_cast<size_t>(end - rest_.begin()));
    return true;
  }
  bool number(double& value) {
    rest_ = rest_.ltrim();
    const auto [end, status] = std::from_chars(rest_.begin(), rest_.end(), value);
    if (status != std::errc()) return fail("expected a scale");
    rest_ = rest_.drop_front(static_cast<size_t>(end - rest_.begin()));
    return true;
  }
  bool fail(std::string text) {
    if (why.empty()) why = std::move(text);
    return false;
  }
  std::string why;

 private:
  llvm::StringRef rest_;
};

bool readScale(Reader& r, Quantization& q) {
  double scale;
  int64_t zero = 0;
  if (!r.number(scale) || (r.accept(":") && !r.integer(zero))) return false;
  if (!(scale > 0) || scale - scale != 0) return r.fail("scales must be positive and finite");
  if (zero < q.min || zero > q.max) return r.fail("zero point outside of the storage range");
  q.scales.push_back(scale);
  q.zero_points.push_back(zero);
  return true;
}

// "{a, b}" or nested for blocks; `shape` gets the counts.
bool readScales(Reader& r, Quantization& q, size_t depth) {
  if (!r.accept("{")) return readScale(r, q);
  int64_t count = 0;
  do {
    if (!readScales(r, q, depth + 1)) return false;
    ++count;
  } while (r.accept(","));
  if (q.shape.size() <= depth) q.shape.resize(depth + 1, 0);
  if (q.shape[depth] && q.shape[depth] != count) return r.fail("ragged list of scales");
  q.shape[depth] = count;
  return r.expect("}");
}

bool readAxes(Reader& r, Quantization& q) {
  int64_t axis, block = 1;
  if (!r.accept("{")) {
    if (!r.integer(axis)) return false;
    q.axes.push_back(axis);
    q.blocks.push_back(1);
    return true;
  }
  do {
    if (!r.integer(axis) || !r.expect(":") || !r.integer(block)) return false;
    if (block < 1) return r.fail("blocks have at least one element");
    q.axes.push_back(axis);
    q.blocks.push_back(block);
  } while (r.accept(","));
  return r.expect("}");
}

bool read(Reader& r, Quantization& q) {
  if (!r.expect("!quant.uniform") || !r.expect("<")) return false;
  const auto storage = parseElementType(r.word());
  if (!storage || !isInteger(*storage)) return r.fail("storage must be an integer type");
  q.storage = *storage;
  const int bits = elementBits(q.storage);
  q.min = isSigned(q.storage) ? -(int64_t{1} << (bits - 1)) : 0;
  q.max = bits >= 63 ? INT64_MAX : (int64_t{1} << (isSigned(q.storage) ? bits - 1 : bits)) - 1;
  if (r.accept("<")) {
    const int64_t min = q.min, max = q.max;
    if (!r.integer(q.min) || !r.expect(":") || !r.integer(q.max) || !r.expect(">")) return false;
    if (q.min < min || q.max > max || q.min >= q.max)
      return r.fail("storage range outside of the storage type");
  }
  if (!r.expect(":")) return false;
  const auto expressed = parseElementType(r.word());
  if (!expressed || !isFloat(*expressed)) return r.fail("expressed type must be a float type");
  q.expressed = *expressed;
  if (r.accept(":") && !readAxes(r, q)) return false;
  if (!r.expect(",") || !readScales(r, q, 0)) return false;
  if (q.shape.size() != q.axes.size()) return r.fail("scales do not match the quantized dimensions");
  size_t count = 1;
  for (int64_t n : q.shape) count *= static_cast<size_t>(n);
  if (count != q.scales.size()) return r.fail("scales do not match the quantized dimensions");
  return r.expect(">");
}

void writeScales(llvm::raw_ostream& os, const Quantization& q, size_t depth, size_t& next) {
  if (depth == q.shape.size()) {
    writeJsonNumber(os, q.scales[next]);
    if (q.zero_points[next]) os << ':' << q.zero_points[next];
    ++next;
    return;
  }
  os << '{';
  for (int64_t i = 0; i < q.shape[depth]; ++i) {
    if (i) os << ',';
    writeScales(os, q, depth + 1, next);
  }
  os << '}';
}

}  // namespace

bool isQuantized(const Type& type) { return llvm::StringRef(type.encoding).starts_with("!quant"); }

std::optional<Quantization> parseQuantization(llvm::StringRef text, std::string* why) {
  Reader r(text);
  Quantization q;
  if (read(r, q)) return q;
  if (why) *why = r.why;
  return std::nullopt;
}

std::string quantizationText(const Quantization& q) {
  std::string text;
  llvm::raw_string_ostream os(text);
  const int bits = elementBits(q.storage);
  // The quant dialect spells unsigned storage "u8".
  const llvm::StringRef name = elementTypeMlirName(q.storage);
  os << "!quant.uniform<" << (name.starts_with("ui") ? "u" + name.drop_front(2).str() : name.str());
  const int64_t min = isSigned(q.storage) ? -(int64_t{1} << (bits - 1)) : 0;
  const int64_t max = bits >= 63 ? INT64_MAX : (int64_t{1} << (isSigned(q.storage) ? bits - 1 : bits)) - 1;
  if (q.min != min || q.max != max) os << '<' << q.min << ':' << q.max << '>';
  os << ':' << elementTypeMlirName(q.expressed);
  if (!q.axes.empty()) {
    const bool blocked = q.axes.size() > 1 || q.blocks[0] != 1;
    os << ':';
    if (blocked) os << '{';
    for (size_t i = 0; i < q.axes.size(); ++i) {
      os << (i ? ", " : "") << q.axes[i];
      if (blocked) os << ':' << q.blocks[i];
    }
    if (blocked) os << '}';
  }
  os << ", ";
  size_t next = 0;
  writeScales(os, q, 0, next);
  os << '>';
  return text;
}

size_t scaleIndex(const Quantization& q, llvm::ArrayRef<int64_t> index) {
  size_t at = 0;
  for (size_t i = 0; i < q.axes.size(); ++i)
    at = at * static_cast<size_t>(q.shape[i]) +
         static_cast<size_t>(index[static_cast<size_t>(q.axes[i])] / q.blocks[i]);
  return at;
}

}  // namespace tpu::hlo
