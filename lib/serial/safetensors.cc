// safetensors: the header's length (8 bytes), a JSON header of names, types, shapes and offsets, the
// elements. https://github.com/huggingface/safetensors
#include <cstring>

#include "llvm/ADT/StringSwitch.h"
#include "tpu/serial/array_file.h"
#include "tpu/serial/json.h"
#include "tpu/serial/json_writer.h"
#include "tpu/support/diagnostics.h"

namespace tpu {
namespace {

struct TypeName {
  llvm::StringLiteral name;
  ElementType element;
};
constexpr TypeName kTypes[] = {
    {"BOOL", ElementType::kPred},
    {"U8", ElementType::kU8},
    {"I8", ElementType::kS8},
    {"U16", ElementType::kU16},
    {"I16", ElementType::kS16},
    {"U32", ElementType::kU32},
    {"I32", ElementType::kS32},
    {"U64", ElementType::kU64},
    {"I64", ElementType::kS64},
    {"F16", ElementType::kF16},
    {"BF16", ElementType::kBF16},
    {"F32", ElementType::kF32},
    {"F64", ElementType::kF64},
    {"C64", ElementType::kC64},
    {"F8_E4M3", ElementType::kF8E4M3FN},
    {"F8_E5M2", ElementType::kF8E5M2},
    {"F8_E8M0", ElementType::kF8E8M0FNU},
};

llvm::Error bad(llvm::StringRef where, const llvm::Twine& text) { return fail(Code::kBadArray, where, text); }

llvm::Expected<FileArray> readEntry(llvm::StringRef name, JsonValue value, llvm::StringRef data,
                                    llvm::StringRef where) {
  FileArray out;
  out.name = name.str();
  const auto dtype = value.find("dtype"), shape = value.find("shape"), offsets = value.find("data_offsets");
  llvm::SmallVector<int64_t, 2> range;
  if (!dtype || !dtype->asString() || !shape || !shape->readInts(&out.dims) || !offsets ||
      !offsets->readInts(&range) || range.size() != 2)
    return bad(where, "entry '" + name + "' has no type, shape or offsets");
  for (const TypeName& t : kTypes)
    if (t.name == *dtype->asString()) out.element = t.element;
  if (!out.element)
    return bad(where, "entry '" + name + "': elements of type " + *dtype->asString() + " are not read");
  out.width = hostBytes(*out.element);
  uint64_t want = static_cast<uint64_t>(out.width);
  for (int64_t d : out.dims)
    if (d < 0 || __builtin_mul_overflow(want, static_cast<uint64_t>(d), &want))
      return bad(where, "entry '" + name + "': malformed shape");
  if (range[0] < 0 || range[1] < range[0] || static_cast<uint64_t>(range[1]) > data.size() ||
      static_cast<uint64_t>(range[1] - range[0]) != want)
    return bad(where, "entry '" + name + "': " + describe(out) + " does not fit its offsets");
  const llvm::StringRef bytes = data.slice(range[0], range[1]);
  out.bytes.assign(bytes.begin(), bytes.end());
  return out;
}

llvm::StringRef nameOf(ElementType element) {
  for (const TypeName& t : kTypes)
    if (t.element == element) return t.name;
  return elementBits(element) <= 8 ? (isSigned(element) ? "I8" : "U8") : "C64";
}

}  // namespace

llvm::Expected<std::vector<FileArray>> readSafetensors(llvm::StringRef bytes, llvm::StringRef where) {
  uint64_t length = 0;
  if (bytes.size() >= 8) std::memcpy(&length, bytes.data(), 8);
  if (bytes.size() < 8 || length > bytes.size() - 8) return bad(where, "the header is truncated");
  auto header = JsonDoc::parse(where, bytes.substr(8, length).str());
  if (!header) return header.takeError();
  const llvm::StringRef data = bytes.substr(8 + length);
  std::vector<FileArray> out;
  for (const JsonMember& m : header->root().members()) {
    if (m.key == "__metadata__") continue;
    auto array = readEntry(m.key, m.value, data, where);
    if (!array) return array.takeError();
    out.push_back(std::move(*array));
  }
  return out;
}

std::string writeSafetensors(llvm::ArrayRef<NamedTensor> tensors) {
  std::string header;
  llvm::raw_string_ostream os(header);
  JsonWriter json(os);
  int64_t at = 0;
  json.beginObject();
  for (const NamedTensor& t : tensors) {
    const int64_t end = at + static_cast<int64_t>(t.tensor->bytes.size());
    json.key(t.name)
        .beginObject()
        .field("dtype", nameOf(t.tensor->element))
        .field("shape", llvm::ArrayRef<int64_t>(t.tensor->dims));
    json.field("data_offsets", llvm::ArrayRef<int64_t>({at, end})).endObject();
    at = end;
  }
  json.endObject();
  os.flush();
  header.append((8 - header.size() % 8) % 8, ' ');
  const uint64_t length = header.size();
  std::string out(reinterpret_cast<const char*>(&length), 8);
  out += header;
  for (const NamedTensor& t : tensors)
    out.append(reinterpret_cast<const char*>(t.tensor->bytes.data()), t.tensor->bytes.size());
  return out;
}

}  // namespace tpu
