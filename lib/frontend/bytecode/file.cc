// Sections and tables of a bytecode file.
#include "file.h"

#include "operations.h"

namespace tpu::frontend::bytecode {
namespace {

enum Section : uint8_t {
  kStrings,
  kDialects,
  kAttrTypes,
  kAttrTypeOffsets,
  kIr,
  kResources,
  kResourceOffsets,
  kDialectVersion,
  kProperties,
  kNumSections
};

// A file's sections by kind; data() is null where there is none.
using Sections = llvm::StringRef[kNumSections];

bool readStrings(Bytes in, File& file) {
  uint64_t count;
  if (!in.count(count)) return false;
  std::vector<uint64_t> sizes(count);
  // The last string's size stands first.
  for (size_t i = count; i-- > 0;)
    if (!in.count(sizes[i])) return false;
  file.strings.reserve(count);
  for (uint64_t size : sizes) {
    llvm::StringRef text;
    if (!in.take(size, text)) return false;
    if (text.empty() || text.back() != '\0') return in.fail("a string does not end in a NUL byte");
    file.strings.push_back(text.drop_back());
  }
  return in.left() == 0 || in.fail("bytes follow the last string");
}

bool readDialects(Bytes in, File& file) {
  uint64_t count, name;
  if (!in.count(count)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    bool versioned = false;
    if (!in.varint(name)) return false;
    if (file.version >= 1) {
      versioned = name & 1;
      name >>= 1;
    }
    if (name >= file.strings.size()) return in.fail("dialect name " + llvm::Twine(name) + " is no string");
    file.dialects.push_back(file.strings[name]);
    if (versioned) {
      uint8_t kind;
      llvm::StringRef data;
      if (!readSection(in, kind, data)) return false;
      if (kind != kDialectVersion) return in.fail("expected the version of a dialect");
    }
  }
  uint64_t total = 0;
  if (file.version >= 4 && !in.count(total)) return false;
  while (in.left()) {
    uint64_t dialect, names;
    if (!in.index(dialect, file.dialects.size(), "dialect") || !in.count(names)) return false;
    for (uint64_t i = 0; i < names; ++i) {
      OpName op;
      if (file.version >= 5 ? !in.flagged(name, op.registered) : !in.varint(name)) return false;
      if (name >= file.strings.size())
        return in.fail("operation name " + llvm::Twine(name) + " is no string");
      op.name = (file.dialects[dialect] + "." + file.strings[name]).str();
      file.op_names.push_back(std::move(op));
    }
  }
  return true;
}

bool readEntries(Bytes& in, Bytes& data, const File& file, uint64_t count, std::vector<Entry>& entries) {
  while (entries.size() < count) {
    uint64_t dialect, group;
    if (!in.index(dialect, file.dialects.size(), "dialect") || !in.count(group)) return false;
    if (group > count - entries.size()) return in.fail("a group of more entries than the table has");
    for (uint64_t i = 0; i < group; ++i) {
      Entry entry;
      uint64_t size;
      entry.dialect = static_cast<uint32_t>(dialect);
      if (!in.flagged(size, entry.custom) || !data.take(size, entry.data)) return false;
      entries.push_back(entry);
    }
  }
  return true;
}

bool readAttrTypes(Bytes in, Bytes data, File& file) {
  uint64_t attrs, types;
  if (!in.count(attrs) || !in.count(types)) return false;
  return readEntries(in, data, file, attrs, file.attrs) && readEntries(in, data, file, types, file.types);
}

bool readProperties(Bytes in, File& file) {
  uint64_t count;
  if (!in.count(count)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t size;
    llvm::StringRef data;
    if (!in.varint(size) || !in.take(size, data)) return false;
    file.properties.push_back(data);
  }
  return true;
}

}  // namespace

bool readSection(Bytes& in, uint8_t& kind, llvm::StringRef& data) {
  uint8_t id;
  uint64_t size, alignment;
  if (!in.byte(id) || !in.varint(size)) return false;
  kind = id & 0x7f;
  if (kind >= kNumSections) return in.fail("section of unknown kind " + llvm::Twine(kind));
  if (id & 0x80) {
    if (!in.varint(alignment)) return false;
    if (!alignment || (alignment & (alignment - 1)))
      return in.fail("alignment " + llvm::Twine(alignment) + " is no power of two");
    uint8_t padding;
    while (in.offset() & (alignment - 1)) {
      if (!in.byte(padding)) return false;
      if (padding != 0xcb) return in.fail("a byte of padding is no padding");
    }
  }
  return in.take(size, data);
}

bool readIrSection(Bytes& in, llvm::StringRef& data) {
  uint8_t kind;
  if (!readSection(in, kind, data)) return false;
  return kind == kIr || in.fail("expected the operations of a region");
}

bool readHeader(Bytes& in, File& file) {
  llvm::StringRef magic;
  if (!in.take(4, magic)) return false;
  if (magic != "ML\xefR") return in.fail("this is no MLIR bytecode");
  if (!in.varint(file.version)) return false;
  file.producer_offset = in.offset();
  return in.cString(file.producer);
}

bool readSections(Bytes& in, File& file) {
  Sections sections;
  while (in.left()) {
    uint8_t kind;
    llvm::StringRef data;
    if (!readSection(in, kind, data)) return false;
    if (sections[kind].data()) return in.fail("section of kind " + llvm::Twine(kind) + " stands twice");
    sections[kind] = data;
  }
  for (uint8_t kind : {kStrings, kDialects, kAttrTypes, kAttrTypeOffsets, kIr})
    if (!sections[kind].data()) return in.fail("section of kind " + llvm::Twine(kind) + " is missing");
  auto part = [&](Section kind) { return in.part(sections[kind]); };
  if (!readStrings(part(kStrings), file) || !readDialects(part(kDialects), file) ||
      !readAttrTypes(part(kAttrTypeOffsets), part(kAttrTypes), file))
    return false;
  if (sections[kProperties].data() && !readProperties(part(kProperties), file)) return false;
  return readOperations(part(kIr), file);
}

}  // namespace tpu::frontend::bytecode
