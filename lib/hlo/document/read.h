// The reader of program documents: tables in dependency order, straight into module rows.
#pragma once
#include "llvm/ADT/DenseMap.h"
#include "tpu/hlo/module.h"
#include "tpu/serial/document.h"

namespace tpu::hlo {

inline constexpr int64_t kMaxRowId = UINT32_MAX - 1;

/// Rows by the id that a document gives them. Ids come from outside: any number may be asked for.
template <class Id>
class RowMap {
 public:
  /// False where the id stands already.
  bool add(int64_t id, Id row) { return rows_.try_emplace(static_cast<uint64_t>(id), row).second; }
  Id find(std::optional<int64_t> id) const {
    if (!id || *id < 0 || *id > kMaxRowId) return Id();
    return rows_.lookup(static_cast<uint64_t>(*id));
  }

 private:
  llvm::DenseMap<uint64_t, Id> rows_;
};

class DocumentReader {
 public:
  explicit DocumentReader(const JsonDoc& document) : doc_(document) {}
  llvm::Expected<Module> run();

 private:
  llvm::Error header(FieldReader& r);
  llvm::Error pairs(JsonValue::Range rows, llvm::StringRef what,
                    std::vector<std::pair<std::string, std::string>>& out);
  llvm::Error mesh(JsonValue row);
  llvm::Error sharding(JsonValue row);
  llvm::Error literal(JsonValue row);
  llvm::Error func(JsonValue row);
  llvm::Error port(JsonValue row);
  llvm::Error region(JsonValue row);
  llvm::Error op(JsonValue row);
  llvm::Error why(JsonValue row);

  // read_values.cc
  llvm::Error bad(JsonValue at, const llvm::Twine& text);
  /// The fields of a type among those of `r`; `id` stays none where there are none and `optional` is set.
  llvm::Error type(FieldReader& r, JsonValue at, TypeId& id, int depth = 0, bool optional = false);
  llvm::Error dims(JsonValue value, Dims& out);
  llvm::Error shardingId(FieldReader& r, llvm::StringRef key, ShardingId& id);
  llvm::Error shardingId(JsonValue value, ShardingId& id);
  llvm::Error meshId(JsonValue value, MeshId& id);
  llvm::Error axes(JsonValue value, const Mesh& mesh, llvm::SmallVectorImpl<AxisRef>& out);
  llvm::Error valueRef(JsonValue value, FuncId func, ValueId& out);
  llvm::Error opRef(JsonValue value, OpId& out);
  llvm::Error funcRef(FieldReader& r, JsonValue row, FuncId& out);

  // read_attrs.cc
  llvm::Error attrs(JsonValue object, OpId op);
  llvm::Error attr(JsonValue value, OpId op, Attr& out);
  llvm::Error literalValue(JsonValue value, OpId op, LiteralId& out);
  llvm::Error literalData(FieldReader& r, JsonValue at, const Type& type, Literal& out);
  llvm::Error denseData(JsonValue list, const Type& type, Literal& out);
  llvm::Error groups(JsonValue value, Groups& out);

  const JsonDoc& doc_;
  Module m;
  RowMap<MeshId> meshes_;
  RowMap<ShardingId> shardings_;
  RowMap<LiteralId> literals_;
  RowMap<OpId> ops_;
  struct Counts {
    int64_t args = 0, results = 0;
    JsonValue row;
  };
  std::vector<Counts> counts_;            // by function
  llvm::DenseMap<uint32_t, int> depths_;  // by RegionId; function bodies are 0 and not in it
  llvm::DenseMap<std::pair<int64_t, int64_t>, JsonValue> regions_;  // (op, index) -> args, until the op comes
};

}  // namespace tpu::hlo
