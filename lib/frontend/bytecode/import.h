// From the operations of a portable artifact to HLO rows: the same module that the program's text gives.
#pragma once
#include "../parser.h"
#include "../rules.h"
#include "../tuple_parts.h"
#include "llvm/ADT/StringMap.h"
#include "text.h"

namespace tpu::frontend::bytecode {

/// A row of ops.def.
struct OpRow {
  hlo::Opcode opcode;
  llvm::StringRef properties;  // names in the order of their coding
};
/// Of an operation's full name; none for what is unknown.
std::optional<OpRow> findOp(llvm::StringRef name);

class Importer {
 public:
  Importer(const File& file, Entries& entries, llvm::StringRef filename, hlo::Module& module);
  /// `any_entry`: as in ReadOptions.
  bool run(bool any_entry);
  bool sawFileLoc() const { return saw_file_loc_; }

 private:
  using ValueId = hlo::ValueId;
  using OpId = hlo::OpId;
  using TypeId = hlo::TypeId;
  using LocId = hlo::LocId;
  using AttrKey = hlo::AttrKey;
  using Ints = llvm::SmallVector<int64_t, 8>;

  struct Location {
    LocId file;
    llvm::StringRef name;
  };
  // An operation's attributes: properties first, then the others. kNone for one that is absent.
  using Named = std::vector<std::pair<llvm::StringRef, uint32_t>>;

  // import.cc
  bool moduleAttrs(const RawOp& op);
  bool func(const RawOp& op);
  bool ports(const RawOp& op, uint32_t attrs, std::vector<hlo::Port>& ports);
  bool portAttr(const RawOp& op, llvm::StringRef name, uint32_t attr, hlo::Port& port);
  bool body(const RawRegion& raw, hlo::RegionId region);
  bool operation(const RawOp& raw, hlo::RegionId region);
  bool cast(const RawOp& raw);
  bool types(llvm::ArrayRef<uint32_t> rows, llvm::SmallVectorImpl<TypeId>& types);
  bool operands(const RawOp& raw, llvm::SmallVectorImpl<ValueId>& values);
  bool names(const RawOp& op, llvm::StringRef properties, Named& named);
  const std::string& nameOf(const RawOp& op) const { return f.op_names[op.name].name; }
  bool fail(const RawOp& op, const llvm::Twine& text) { return e.fail(op.offset, text); }

  // import_types.cc
  TypeId type(uint32_t row);
  TypeId tensor(const TypeNode& node);
  Location location(uint32_t row);
  LocId locId(uint32_t row);
  Location readLocation(const AttrNode& node);
  LocId fileLoc(uint32_t file, uint64_t line, uint64_t column);

  // import_attrs.cc
  bool attribute(OpId op, llvm::StringRef name, uint32_t row);
  bool value(OpId op, AttrKey key, llvm::StringRef name, uint32_t row);
  bool isDefault(hlo::Opcode opcode, llvm::StringRef name, const AttrNode& node);
  bool raggedDims(OpId op, const AttrNode& node);
  bool dotAlgorithm(OpId op, const Named& named);
  bool intValue(const AttrNode& node, int64_t& value);
  bool ints(const AttrNode& node, Ints& values, hlo::Dims* dims = nullptr);
  bool literal(const AttrNode& node, hlo::Literal& literal);
  llvm::StringRef spelling(const AttrNode& node);
  void addExtra(OpId op, llvm::StringRef name, uint32_t row);

  // import_shardings.cc
  bool meshOp(const RawOp& op);
  bool mesh(const AttrNode& node, hlo::Mesh& mesh);
  bool sharding(uint32_t row, hlo::ShardingId& id);
  bool shardings(uint32_t row, Ints& ids);
  bool axes(const hlo::Mesh& mesh, llvm::ArrayRef<uint64_t> rows, llvm::SmallVectorImpl<hlo::AxisRef>& axes);
  bool axis(const hlo::Mesh& mesh, uint32_t row, hlo::AxisRef& axis);
  bool manualAxes(OpId op, const Named& named);

  const File& f;
  Entries& e;
  Text text_;
  hlo::Module& m;
  const std::string base_;
  hlo::FuncId func_;
  std::vector<ValueId> values_;  // by the file's numbers
  std::vector<TypeId> types_;    // by row
  std::vector<uint8_t> types_open_;
  llvm::DenseMap<uint32_t, Location> locations_;
  llvm::StringMap<hlo::MeshId> meshes_;
  int type_depth_ = 0, location_depth_ = 0;
  TupleParts tuple_parts_;
  bool saw_file_loc_ = false;
};

}  // namespace tpu::frontend::bytecode
