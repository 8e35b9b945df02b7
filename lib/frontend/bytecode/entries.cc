// Decoding attribute and type entries by their tables.
#include "entries.h"

#include "llvm/ADT/StringSwitch.h"

namespace tpu::frontend::bytecode {
namespace {

template <class Tag>
struct Row {
  llvm::StringRef dialect;
  uint64_t code;
  Tag tag;
  llvm::StringRef letters, detail;
};

const Row<AttrTag> kAttrRows[] = {
#define BYTECODE_ATTR(dialect, code, tag, letters, detail) {dialect, code, AttrTag::tag, letters, detail},
#define BYTECODE_TYPE(...)
#include "entries.def"
};
const Row<TypeTag> kTypeRows[] = {
#define BYTECODE_ATTR(...)
#define BYTECODE_TYPE(dialect, code, tag, letters, detail) {dialect, code, TypeTag::tag, letters, detail},
#include "entries.def"
};

const Row<AttrTag>* findRow(const AttrNode&, llvm::StringRef dialect, uint64_t code) {
  for (const auto& row : kAttrRows)
    if (row.code == code && row.dialect == dialect) return &row;
  return nullptr;
}
const Row<TypeTag>* findRow(const TypeNode&, llvm::StringRef dialect, uint64_t code) {
  for (const auto& row : kTypeRows)
    if (row.code == code && row.dialect == dialect) return &row;
  return nullptr;
}

}  // namespace

llvm::StringRef enumSpelling(llvm::StringRef enumeration, uint64_t value) {
  static const llvm::StringRef kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  static const llvm::StringRef kTypes[] = {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
  static const llvm::StringRef kVersions[] = {
      "API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
      "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"};
  static const llvm::StringRef kFfts[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
  static const llvm::StringRef kPrecisions[] = {"DEFAULT", "HIGH", "HIGHEST"};
  static const llvm::StringRef kAlgorithms[] = {"DEFAULT", "THREE_FRY", "PHILOX"};
  static const llvm::StringRef kDistributions[] = {"", "UNIFORM", "NORMAL"};
  static const llvm::StringRef kTransposes[] = {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
  static const llvm::StringRef kModes[] = {"DEFAULT", "HIGHEST", "TOLERANCE"};
  auto all = llvm::StringSwitch<llvm::ArrayRef<llvm::StringRef>>(enumeration)
                 .Case("comparison_direction", kDirections)
                 .Case("comparison_type", kTypes)
                 .Case("api_version", kVersions)
                 .Case("fft_type", kFfts)
                 .Case("precision", kPrecisions)
                 .Case("rng_algorithm", kAlgorithms)
                 .Case("rng_distribution", kDistributions)
                 .Case("transpose", kTransposes)
                 .Case("result_accuracy_mode", kModes)
                 .Default({});
  return value < all.size() ? all[value] : llvm::StringRef();
}

Entries::Entries(const File& file, Fault& fault)
    : file_(file), fault_(fault), attrs_(file.attrs.size()), types_(file.types.size()) {}

const AttrNode* Entries::attr(uint32_t row) {
  if (failed()) return nullptr;
  auto& node = attrs_[row];
  if (!node) {
    auto fresh = std::make_unique<AttrNode>();
    if (!decode(file_.attrs[row], false, *fresh)) return nullptr;
    node = std::move(fresh);
  }
  return node.get();
}

const TypeNode* Entries::type(uint32_t row) {
  if (failed()) return nullptr;
  auto& node = types_[row];
  if (!node) {
    auto fresh = std::make_unique<TypeNode>();
    if (!decode(file_.types[row], true, *fresh)) return nullptr;
    node = std::move(fresh);
  }
  return node.get();
}

template <class N>
bool Entries::decode(const Entry& entry, bool is_type, N& node) {
  Bytes in(entry.data, file_.offsetOf(entry.data), fault_);
  node.offset = in.offset();
  if (!entry.custom) return in.cString(node.text);
  uint64_t code;
  if (!in.varint(code)) return false;
  llvm::StringRef dialect = file_.dialects[entry.dialect];
  const auto* row = findRow(node, dialect, code);
  if (!row)
    return in.fail(is_type ? Code::kUnknownType : Code::kUnsupportedFormat,
                   llvm::Twine("unknown ") + (is_type ? "type " : "attribute ") + llvm::Twine(code) +
                       " of dialect '" + dialect + "'");
  node.tag = row->tag;
  node.detail = row->detail;
  return fields(in, row->letters, node.fields);
}

bool Entries::fields(Bytes& in, llvm::StringRef letters, llvm::SmallVectorImpl<Field>& fields) {
  for (char letter : letters) {
    Field one;
    if (!field(in, letter, fields, one)) return false;
    fields.push_back(std::move(one));
  }
  return in.left() == 0 || in.fail("an attribute or type is longer than it should be");
}

bool Entries::field(Bytes& in, char letter, const llvm::SmallVectorImpl<Field>& before, Field& field) {
  switch (letter) {
    case 'a':
      return in.index(field.n, file_.attrs.size(), "attribute");
    case 't':
      return in.index(field.n, file_.types.size(), "type");
    case 's': {
      uint64_t row;
      if (!in.index(row, file_.strings.size(), "string")) return false;
      field.bytes = file_.strings[row];
      return true;
    }
    case 'o':
    case 'O': {
      bool present;
      if (!in.flagged(field.n, present)) return false;
      if (letter == 'o' && present && field.n >= file_.attrs.size())
        return in.fail("attribute " + llvm::Twine(field.n) + " is referred to");
      if (!present) field.n = kAbsent;
      return true;
    }
    case 'v':
      return in.varint(field.n);
    case 'i':
    case 'd': {
      int64_t value;
      if (!in.svarint(value)) return false;
      field.n = static_cast<uint64_t>(value);
      return true;
    }
    case 'B': {
      uint8_t value;
      if (!in.byte(value)) return false;
      field.n = value;
      return true;
    }
    case 'b': {
      uint64_t size;
      return in.varint(size) && in.take(size, field.bytes);
    }
    case 'w':
    case 'f':
      return wide(in, before.back().row(), letter == 'f', field);
    default:
      return list(in, letter, field);
  }
}

bool Entries::list(Bytes& in, char letter, Field& field) {
  uint64_t count;
  if (!in.count(count)) return false;
  field.list.reserve(letter == 'D' ? 2 * count : count);
  for (uint64_t i = 0; i < (letter == 'D' ? 2 * count : count); ++i) {
    uint64_t value;
    int64_t with_sign;
    switch (letter) {
      case 'A':
      case 'D':
        if (!in.index(value, file_.attrs.size(), "attribute")) return false;
        break;
      case 'T':
        if (!in.index(value, file_.types.size(), "type")) return false;
        break;
      case 'U':
        if (!in.varint(value)) return false;
        break;
      default:
        if (!in.svarint(with_sign)) return false;
        value = static_cast<uint64_t>(with_sign);
        break;
    }
    field.list.push_back(value);
  }
  return true;
}

// Numbers of up to 8 bits take a byte, longer ones are signed varints.
bool Entries::wide(Bytes& in, uint32_t type_row, bool is_float, Field& field) {
  const TypeNode* node = type(type_row);
  if (!node) return false;
  uint64_t bits = 0;
  if (node->tag == TypeTag::kIndex) {
    bits = 64;
  } else if (node->tag == TypeTag::kInteger) {
    bits = (*node)[0].n >> 2;
  } else if (auto of = element(type_row)) {
    bits = static_cast<uint64_t>(elementBits(*of));
  }
  auto of = element(type_row);
  if (!bits || bits > 64 || (is_float && !(of && isFloat(*of))) || (!is_float && of && isFloat(*of)))
    return in.fail("a number of a type that has none");
  if (bits <= 8) {
    uint8_t value;
    if (!in.byte(value)) return false;
    field.n = value;
    // The sign bit of the type's width fills the rest.
    if (!is_float && bits < 64 && bits > 1 && !(of && isUnsigned(*of)) && (value >> (bits - 1) & 1))
      field.n |= ~uint64_t{0} << bits;
    return true;
  }
  int64_t value;
  if (!in.svarint(value)) return false;
  field.n = static_cast<uint64_t>(value);
  if (bits < 64 && (is_float || (of && isUnsigned(*of)))) field.n &= (uint64_t{1} << bits) - 1;
  return true;
}

std::optional<ElementType> Entries::element(uint32_t row) {
  const TypeNode* node = type(row);
  if (!node) return std::nullopt;
  switch (node->tag) {
    case TypeTag::kElement:
      return parseElementType(node->detail);
    case TypeTag::kText:
      return parseElementType(node->text);
    case TypeTag::kInteger: {
      uint64_t width = (*node)[0].n >> 2, sign = (*node)[0].n & 3;
      if (sign == 1 && width != 1) return std::nullopt;  // "si8" is no element type of StableHLO
      return parseElementType((sign == 2 ? "ui" : "i") + std::to_string(width));
    }
    case TypeTag::kComplex: {
      const TypeNode* part = type((*node)[0].row());
      if (!part || part->tag == TypeTag::kComplex) return std::nullopt;
      auto of = element((*node)[0].row());
      if (of == ElementType::kF32) return ElementType::kC64;
      if (of == ElementType::kF64) return ElementType::kC128;
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace tpu::frontend::bytecode
