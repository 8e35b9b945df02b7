// Attributes and types of a bytecode file, decoded on demand into plain fields.
//
// The tables of entries.def say what an entry holds; nothing here knows what it means. A node refers to
// others by number, so that decoding never recurses; who follows the numbers bounds the depth.
#pragma once
#include <memory>

#include "file.h"
#include "tpu/support/element_type.h"

namespace tpu::frontend::bytecode {

enum class AttrTag : uint8_t {
  kText,  // as the compiler prints it
  kArray,
  kDict,
  kString,
  kSymbol,
  kType,
  kUnit,
  kBool,
  kInteger,
  kFloat,
  kElements,
  kDenseArray,
  kEnum,
  kBounds,
  kOutputAlias,
  kAccuracy,
  kCallSite,
  kFileLoc,
  kFileRange,
  kFused,
  kNamedLoc,
  kUnknownLoc,
  kManualAxes,
  kMeshAxis,
  kMesh,
  kSubAxis,
  kAxisRef,
  kDimSharding,
  kSharding,
  kShardingPerValue,
  kDimMapping,
  kTensorMapping,
  kShardingRule,
  kAxisRefList,
  kAxisRefLists,
  kAllToAllParam,
  kAllToAllParams,
};

enum class TypeTag : uint8_t {
  kText,
  kElement,
  kInteger,  // of builtin: width and sign in one number
  kIndex,
  kNone,
  kTf32,
  kComplex,
  kTensor,
  kEncodedTensor,
  kToken,
  kTuple,
  kFunction,
  kQuantized,
  kQuantizedPerAxis,
};

struct Field {
  uint64_t n = 0;              // a number, a row, a double's bits; kNone where an optional one is absent
  llvm::StringRef bytes;       // s, b
  std::vector<uint64_t> list;  // A, T, D, U, I, L
  int64_t i() const { return static_cast<int64_t>(n); }
  uint32_t row() const { return static_cast<uint32_t>(n); }
};

template <class Tag>
struct Node {
  Tag tag = Tag::kText;
  llvm::StringRef detail;  // name of an enumeration or element type
  uint64_t offset = 0;
  llvm::StringRef text;  // kText
  llvm::SmallVector<Field, 3> fields;
  const Field& operator[](size_t i) const { return fields[i]; }
};
using AttrNode = Node<AttrTag>;
using TypeNode = Node<TypeTag>;

/// Marks an optional number that is absent.
inline constexpr uint64_t kAbsent = ~uint64_t{0};

class Entries {
 public:
  Entries(const File& file, Fault& fault);
  /// The node of a row, or null where it is damaged (the fault is set then).
  const AttrNode* attr(uint32_t row);
  const TypeNode* type(uint32_t row);
  /// The element type that a type row stands for; none for all else.
  std::optional<ElementType> element(uint32_t row);

  bool fail(Code code, uint64_t offset, const llvm::Twine& text) { return fault_.set(code, offset, text); }
  bool fail(uint64_t offset, const llvm::Twine& text) { return fault_.set(Code::kSyntaxError, offset, text); }
  bool failed() const { return fault_.isSet(); }
  /// A cursor over a part of the file.
  Bytes bytes(llvm::StringRef part) { return Bytes(part, file_.offsetOf(part), fault_); }
  const File& file() const { return file_; }

 private:
  template <class N>
  bool decode(const Entry& entry, bool is_type, N& node);
  bool fields(Bytes& in, llvm::StringRef letters, llvm::SmallVectorImpl<Field>& fields);
  bool field(Bytes& in, char letter, const llvm::SmallVectorImpl<Field>& before, Field& field);
  bool list(Bytes& in, char letter, Field& field);
  bool wide(Bytes& in, uint32_t type, bool is_float, Field& field);

  const File& file_;
  Fault& fault_;
  std::vector<std::unique_ptr<AttrNode>> attrs_;
  std::vector<std::unique_ptr<TypeNode>> types_;
};

/// The spelling of an enumeration's value, empty where it has none.
llvm::StringRef enumSpelling(llvm::StringRef enumeration, uint64_t value);

}  // namespace tpu::frontend::bytecode
