// The .npy format: a magic string, a version, a Python dictionary as text, the elements.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include <cstring>

#include "llvm/ADT/StringExtras.h"
#include "tpu/serial/array_file.h"
#include "tpu/support/diagnostics.h"

namespace tpu {
namespace {

constexpr llvm::StringLiteral kMagic("\x93NUMPY");

llvm::Error bad(llvm::StringRef where, const llvm::Twine& text) { return fail(Code::kBadArray, where, text); }

// The value behind 'key': in the header's dictionary.
llvm::StringRef valueOf(llvm::StringRef header, llvm::StringRef key) {
  const size_t at = header.find(("'" + key + "'").str());
  if (at == llvm::StringRef::npos) return {};
  return header.substr(at + key.size() + 2).ltrim(" :");
}

llvm::Error parseDescr(llvm::StringRef header, llvm::StringRef where, FileArray& out) {
  llvm::StringRef value = valueOf(header, "descr");
  if (!value.consume_front("'")) return bad(where, "structured arrays are not read");
  llvm::StringRef descr = value.take_until([](char c) { return c == '\''; });
  const llvm::StringRef whole = descr;
  if (descr.consume_front(">")) return bad(where, "big-endian elements ('" + whole + "') are not read");
  if (!descr.empty() && llvm::StringRef("<|=").contains(descr.front())) descr = descr.drop_front();
  if (descr.empty() || !llvm::StringRef("biufcV").contains(descr.front()) ||
      descr.drop_front().getAsInteger(10, out.width) || !llvm::is_contained({1, 2, 4, 8, 16}, out.width))
    return bad(where, "elements of type '" + whole + "' are not read");
  out.kind = descr.front();
  return llvm::Error::success();
}

llvm::Error parseShape(llvm::StringRef header, llvm::StringRef where, FileArray& out) {
  llvm::StringRef value = valueOf(header, "shape");
  if (!value.consume_front("(")) return bad(where, "no shape in the header");
  llvm::SmallVector<llvm::StringRef, 6> parts;
  value.take_until([](char c) { return c == ')'; }).split(parts, ',', -1, false);
  for (llvm::StringRef part : parts) {
    part = part.trim();
    int64_t dim;
    if (part.empty()) continue;
    if (part.getAsInteger(10, dim) || dim < 0) return bad(where, "malformed shape");
    out.dims.push_back(dim);
  }
  return llvm::Error::success();
}

// Elements of a Fortran-ordered file brought to row-major order.
void toRowMajor(FileArray& a) {
  std::vector<uint8_t> out(a.bytes.size());
  const size_t width = a.width, count = out.size() / width;
  llvm::SmallVector<int64_t, 6> index(a.dims.size(), 0);
  for (size_t from = 0; from < count; ++from) {
    int64_t to = 0;
    for (size_t d = 0; d < a.dims.size(); ++d) to = to * a.dims[d] + index[d];
    std::memcpy(out.data() + to * width, a.bytes.data() + from * width, width);
    for (size_t d = 0; d < a.dims.size() && ++index[d] == a.dims[d]; ++d) index[d] = 0;
  }
  a.bytes = std::move(out);
}

std::string descrOf(ElementType element) {
  const int width = hostBytes(element);
  if (element == ElementType::kPred) return "|b1";
  if (elementBits(element) < 8) return "|V1";
  if (isFloat(element) && element != ElementType::kF16 && element != ElementType::kF32 &&
      element != ElementType::kF64)
    return "|V" + std::to_string(width);
  const char kind = isFloat(element) ? 'f' : isComplex(element) ? 'c' : isSigned(element) ? 'i' : 'u';
  return (width == 1 ? "|" : "<") + std::string(1, kind) + std::to_string(width);
}

}  // namespace

llvm::Expected<FileArray> readNpy(llvm::StringRef bytes, llvm::StringRef where) {
  if (!bytes.starts_with(kMagic) || bytes.size() < 10) return bad(where, "not a .npy file");
  const uint8_t major = static_cast<uint8_t>(bytes[6]);
  size_t begin = 10, length = static_cast<uint8_t>(bytes[8]) | static_cast<uint8_t>(bytes[9]) << 8;
  if (major > 1) {
    if (major > 3 || bytes.size() < 12)
      return bad(where, ".npy version " + llvm::Twine(major) + " is not read");
    uint32_t wide;
    std::memcpy(&wide, bytes.data() + 8, 4);
    begin = 12;
    length = wide;
  }
  if (bytes.size() < begin + length) return bad(where, "the header is truncated");
  const llvm::StringRef header = bytes.substr(begin, length);
  FileArray out;
  if (llvm::Error e = parseDescr(header, where, out)) return e;
  if (llvm::Error e = parseShape(header, where, out)) return e;
  uint64_t want = static_cast<uint64_t>(out.width);
  for (int64_t d : out.dims)
    if (__builtin_mul_overflow(want, static_cast<uint64_t>(d), &want))
      return bad(where, "the shape is too large");
  const llvm::StringRef data = bytes.substr(begin + length);
  if (data.size() != want)
    return bad(where, describe(out) + " needs " + llvm::Twine(want) + " bytes of data, the file has " +
                          llvm::Twine(data.size()));
  out.bytes.assign(data.begin(), data.end());
  if (valueOf(header, "fortran_order").starts_with("True")) toRowMajor(out);
  return out;
}

std::string writeNpy(const HostTensor& tensor) {
  std::string header = "{'descr': '" + descrOf(tensor.element) + "', 'fortran_order': False, 'shape': (";
  for (size_t d = 0; d < tensor.dims.size(); ++d)
    header += std::to_string(tensor.dims[d]) + (d + 1 < tensor.dims.size() ? ", "
                                                : tensor.dims.size() == 1  ? ","
                                                                           : "");
  header += "), }";
  const size_t unpadded = 10 + header.size() + 1;
  header.append((64 - unpadded % 64) % 64, ' ');
  header += '\n';
  std::string out = kMagic.str();
  out += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  out += header;
  out.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  return out;
}

}  // namespace tpu
