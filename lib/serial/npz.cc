// .npz: a zip archive of .npy files. Entries are found through the central directory; stored and deflated
// ones are read, stored ones written.
#include <zlib.h>

#include <cstring>

#include "tpu/serial/array_file.h"
#include "tpu/support/diagnostics.h"

namespace tpu {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint16_t kFirstOfJanuary1980 = 0x21;

llvm::Error bad(llvm::StringRef where, const llvm::Twine& text) { return fail(Code::kBadArray, where, text); }

template <class T>
T at(llvm::StringRef bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

struct Entry {
  std::string name;
  uint16_t method;
  uint64_t packed, size, offset;
};

llvm::Expected<std::vector<Entry>> directory(llvm::StringRef bytes, llvm::StringRef where) {
  size_t end = bytes.size() < 22 ? llvm::StringRef::npos : bytes.size() - 22;
  while (end != llvm::StringRef::npos && at<uint32_t>(bytes, end) != kEnd)
    end = end == 0 ? llvm::StringRef::npos : end - 1;
  if (end == llvm::StringRef::npos) return bad(where, "the archive has no directory; it may be truncated");
  const uint16_t count = at<uint16_t>(bytes, end + 10);
  size_t p = at<uint32_t>(bytes, end + 16);
  std::vector<Entry> entries;
  for (uint16_t i = 0; i < count; ++i) {
    if (p + 46 > bytes.size() || at<uint32_t>(bytes, p) != kCentral)
      return bad(where, "the archive's directory is damaged");
    const size_t name = at<uint16_t>(bytes, p + 28), extra = at<uint16_t>(bytes, p + 30),
                 comment = at<uint16_t>(bytes, p + 32);
    if (p + 46 + name + extra > bytes.size()) return bad(where, "the archive's directory is damaged");
    Entry e{bytes.substr(p + 46, name).str(), at<uint16_t>(bytes, p + 10), at<uint32_t>(bytes, p + 20),
            at<uint32_t>(bytes, p + 24), at<uint32_t>(bytes, p + 42)};
    if (e.packed == UINT32_MAX || e.size == UINT32_MAX || e.offset == UINT32_MAX)
      return bad(where, "entry '" + e.name + "' of 4 GiB or more is not read");
    entries.push_back(std::move(e));
    p += 46 + name + extra + comment;
  }
  return entries;
}

// Deflate makes at most 1032 bytes of one, so what an entry claims to hold is checked before it is taken.
llvm::Expected<std::string> inflated(llvm::StringRef packed, const Entry& e, llvm::StringRef where) {
  if (e.size / 1032 > packed.size()) return bad(where, "entry '" + e.name + "' claims more than its data can hold");
  std::string out(e.size, '\0');
  z_stream z = {};
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  z.avail_in = static_cast<uInt>(packed.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return bad(where, "entry '" + e.name + "' cannot be inflated");
  const int status = inflate(&z, Z_FINISH);
  const bool whole = status == Z_STREAM_END && z.total_out == e.size;
  inflateEnd(&z);
  if (!whole) return bad(where, "entry '" + e.name + "' is damaged");
  return out;
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

// The fields that local and central headers share.
void putCommon(std::string& out, uint32_t crc, uint32_t size, uint16_t name) {
  put<uint16_t>(out, 20);  // version needed
  put<uint16_t>(out, 0);   // flags
  put<uint16_t>(out, kStored);
  put<uint16_t>(out, 0);  // time
  put<uint16_t>(out, kFirstOfJanuary1980);
  put<uint32_t>(out, crc);
  put<uint32_t>(out, size);
  put<uint32_t>(out, size);
  put<uint16_t>(out, name);
  put<uint16_t>(out, 0);  // extra
}

}  // namespace

llvm::Expected<std::vector<FileArray>> readNpz(llvm::StringRef bytes, llvm::StringRef where) {
  auto entries = directory(bytes, where);
  if (!entries) return entries.takeError();
  std::vector<FileArray> out;
  uint64_t packed = 0;
  for (const Entry& e : *entries) {
    packed += e.packed;
    if (packed > bytes.size()) return bad(where, "entries of the archive overlap");
    if (e.offset + 30 > bytes.size() || at<uint32_t>(bytes, e.offset) != kLocal)
      return bad(where, "entry '" + e.name + "' is damaged");
    const size_t data =
        e.offset + 30 + at<uint16_t>(bytes, e.offset + 26) + at<uint16_t>(bytes, e.offset + 28);
    if (data + e.packed > bytes.size()) return bad(where, "entry '" + e.name + "' is truncated");
    const std::string inside = (where + ":" + e.name).str();
    std::string unpacked;
    llvm::StringRef content = bytes.substr(data, e.packed);
    if (e.method == kDeflated) {
      auto whole = inflated(content, e, where);
      if (!whole) return whole.takeError();
      unpacked = std::move(*whole);
      content = unpacked;
    } else if (e.method != kStored) {
      return bad(where, "entry '" + e.name + "' uses compression method " + llvm::Twine(e.method) +
                            ", which is not read");
    }
    auto array = readNpy(content, inside);
    if (!array) return array.takeError();
    llvm::StringRef name(e.name);
    name.consume_back(".npy");
    array->name = name.str();
    out.push_back(std::move(*array));
  }
  return out;
}

std::string writeNpz(llvm::ArrayRef<NamedTensor> tensors) {
  std::string out, central;
  for (const NamedTensor& t : tensors) {
    const std::string name = t.name + ".npy", data = writeNpy(*t.tensor);
    const uint32_t size = static_cast<uint32_t>(data.size()), offset = static_cast<uint32_t>(out.size());
    const uint32_t crc = static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(data.data()), size));
    put(out, kLocal);
    putCommon(out, crc, size, static_cast<uint16_t>(name.size()));
    out += name + data;
    put(central, kCentral);
    put<uint16_t>(central, 20);  // version made by
    putCommon(central, crc, size, static_cast<uint16_t>(name.size()));
    put<uint16_t>(central, 0);  // comment
    put<uint16_t>(central, 0);  // disk
    put<uint16_t>(central, 0);  // internal attributes
    put<uint32_t>(central, 0);  // external attributes
    put(central, offset);
    central += name;
  }
  const uint32_t directory = static_cast<uint32_t>(out.size()),
                 length = static_cast<uint32_t>(central.size());
  const uint16_t count = static_cast<uint16_t>(tensors.size());
  out += central;
  put(out, kEnd);
  put<uint32_t>(out, 0);  // disks
  put(out, count);
  put(out, count);
  put(out, length);
  put(out, directory);
  put<uint16_t>(out, 0);  // comment
  return out;
}

}  // namespace tpu
