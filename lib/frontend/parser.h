// The StableHLO text parser: one pass over the text, straight into module rows, without tokens or a syntax
// tree.
//
// Aliases (#loc12, #map, !t) may be defined before or after the module, and meshes anywhere in it, so both
// are collected by a quick scan first. Pieces of the language lie in parse_*.cc.
#pragma once
#include "cursor.h"
#include "tuple_parts.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "tpu/frontend/frontend.h"
#include "tpu/hlo/module.h"

namespace tpu::frontend {

/// The row of an alias like "loc12" (13; "loc" is 0), or -1 for other names.
int64_t locNumber(llvm::StringRef name);

/// "check.expect_eq", "interpreter.print": ops that only the tests of StableHLO use.
bool isTestDialect(llvm::StringRef name);

class Parser {
 public:
  Parser(llvm::StringRef text, llvm::StringRef filename, hlo::Module& module, DiagnosticSink& sink,
         const ReadOptions& options = {});
  llvm::Error run();
  /// Text that HLO keeps in frontend attributes, read alone: "<["x"=4]>" as a mesh of that name of the module, and
  /// "#sdy.sharding<...>" or "#sdy.sharding_per_value<[...]>" as ids of shardings over its meshes.
  llvm::Error readMesh(const std::string& name);
  llvm::Error readShardings(llvm::SmallVector<int64_t, 8>& ids);

 private:
  using ValueId = hlo::ValueId;
  using OpId = hlo::OpId;
  using TypeId = hlo::TypeId;
  using RegionId = hlo::RegionId;
  using LocId = hlo::LocId;
  using AttrKey = hlo::AttrKey;
  using Opcode = hlo::Opcode;
  using Ints = llvm::SmallVector<int64_t, 8>;

  // A location as written: the file position a user can open, and the name around it (JAX's argument names).
  struct Location {
    LocId file;
    llvm::StringRef name;  // raw string text
    bool nowhere = false;  // loc(""): from a form without places
  };
  struct Alias {
    llvm::StringRef name;
    const char* text = nullptr;  // after the '='
    enum State : uint8_t { kNew, kOpen, kDone } state = kNew;
    Location loc;
    TypeId type;
  };
  struct Binding {
    ValueId first;
    uint32_t count = 0;
    uint32_t depth = 0;
  };
  struct Result {
    llvm::StringRef name;
    uint32_t count = 1;
    const char* at = nullptr;
  };
  using Results = llvm::SmallVector<Result, 1>;
  /// What the attributes of "func.func" say.
  struct GenericFunc {
    std::string name;
    bool is_private = false;
    llvm::SmallVector<TypeId, 8> args, results;
    std::vector<hlo::Port> arg_ports, result_ports;
  };

  // parse_module.cc
  void scanAliases();
  void scanMeshes();
  bool addMesh(hlo::Mesh mesh, const char* at);
  bool parseTop();
  bool parseModule();
  bool parseModuleAttrs();
  bool passMesh();
  bool parseFunc();
  bool parseArgs(hlo::FuncId func);
  void describeArg(ValueId arg, hlo::Port& port, const Location& loc);
  bool parseResults(hlo::FuncId func);
  bool parsePortAttrs(hlo::Port& port);

  // parse_generic.cc: the generic form of what stands around operations
  void scanGenericMeshes();
  bool genericOutside();
  bool genericModule();
  bool genericFunc(const char* at);
  bool genericFuncAttrs(GenericFunc& func);
  bool portAttrList(std::vector<hlo::Port>& ports);
  bool genericEnd(Location& loc);

  // parse_names.cc
  void bind(llvm::StringRef name, ValueId first, uint32_t count, const char* at);
  Binding* slot(llvm::StringRef name);
  size_t openScope() {
    ++depth_;
    return undo_.size();
  }
  void closeScope(size_t mark);
  bool valueName(llvm::StringRef& name);                     // after '%', without "#n"
  bool operand(ValueId& value);                              // "%a" or "%a#1"
  bool operandList(llvm::SmallVectorImpl<ValueId>& values);  // "%a, %b", maybe empty
  bool symbol(std::string& name);                            // "@f" or "@"a b""

  // parse_types.cc
  TypeId type();
  bool elementType(hlo::Type& type);
  bool typeList(llvm::SmallVectorImpl<TypeId>& types);   // "(t, t)" or "t"
  bool bareTypes(llvm::SmallVectorImpl<TypeId>& types);  // "t, t"
  bool maybeTypeSuffix();                                // ": i64" after a number

  // parse_locs.cc
  bool optionalLoc(Location& loc);  // "loc(...)" if it follows
  bool locBody(Location& loc, int depth);
  bool locAlias(llvm::StringRef name, Location& loc, int depth);
  LocId textLoc(std::pair<int, int> line_column);
  LocId textLoc(const char* at) { return textLoc(c.lineColumn(at)); }
  /// The file position that `loc` has; else that of `at` in the text, unless there is said to be none.
  template <class At>
  LocId placeOf(const Location& loc, At at) {
    return loc.file ? loc.file : loc.nowhere ? LocId() : textLoc(at);
  }
  LocId fileLoc(llvm::StringRef file, int64_t line, int64_t column);

  // parse_literals.cc
  bool literal(hlo::Literal& literal);  // dense<...> : tensor<...>
  bool denseInts(Ints& values, hlo::Dims& dims);
  bool literalData(hlo::Literal& literal, const hlo::Type& type, const char* at);
  bool isLiteralType(const hlo::Type& type, const char* at);
  bool findResources();
  bool resourceLiteral(hlo::Literal& literal, const char* at);
  bool hexBytes(llvm::StringRef hex, std::vector<uint8_t>& bytes, const char* at);
  bool hexData(hlo::Literal& literal, const hlo::Type& type, llvm::StringRef hex, const char* at);
  bool element(ElementType element, uint8_t* out);
  bool elementList(const hlo::Type& type, size_t dim, hlo::Literal& literal);
  bool number(ElementType element, uint8_t* out);

  // parse_attrs.cc
  bool attrName(std::string& name);        // a word or a string
  bool attrEntries(OpId op, char close);  // "k = v, unit}" up to and with the closing bracket
  bool attrEntry(OpId op, const std::string& name);
  bool attrValue(OpId op, AttrKey key);
  bool structAttr(OpId op);  // #stablehlo.gather<...>, .conv<[...]x[...]->[...]>
  bool structFields(OpId op);
  bool convolutionDims(OpId op);
  bool windowAttr(OpId op);
  bool ints(Ints& values, hlo::Dims* dims = nullptr);  // any spelling of an integer list
  bool intValue(int64_t& value);
  bool enumWord(llvm::StringRef& word);  // EQ, "EQ" or #stablehlo<comparison_direction EQ>
  bool setEnum(OpId op, AttrKey key, llvm::StringRef spelling, const char* at);
  bool strings(std::vector<std::string>& values);
  void addExtra(OpId op, llvm::StringRef text);

  // parse_shardings.cc
  bool mesh(hlo::Mesh& mesh);  // <["x"=2], device_ids=[...]>
  bool meshRef(hlo::MeshId& id);
  bool sharding(hlo::ShardingId& id);  // <@mesh, [...]>, with or without #sdy.sharding
  bool shardingList(Ints& ids);        // [<...>, <...>]
  bool dimSharding(const hlo::Mesh& mesh, hlo::DimSharding& dim);
  bool axisList(const hlo::Mesh& mesh, llvm::SmallVectorImpl<hlo::AxisRef>& axes);  // {"x", "y":(1)2}
  bool axis(const hlo::Mesh& mesh, hlo::AxisRef& axis);
  bool resultShardings(OpId op);  // value of sdy.sharding on an op

  // parse_ops.cc
  bool parseOp();
  bool genericOp(OpId op);
  bool prettyOp(OpId op);
  bool keywords(OpId op);
  bool keyword(OpId op, llvm::StringRef word);
  bool dotPairs(OpId op, AttrKey lhs, AttrKey rhs);
  bool sliceRanges(OpId op);
  bool trailingTypes(OpId op, bool optional);
  bool functionType(OpId op);
  bool checkOperandTypes(OpId op, llvm::ArrayRef<TypeId> types, const char* at);
  bool finishOp(OpId op, const Results& results, const char* at, std::pair<int, int> place);

  // parse_checks.cc
  bool checkKeyword(OpId op, llvm::StringRef word, const char* at);
  bool unsignedValue(int64_t& value);
  bool programGrid(OpId op);
  bool prettyCheck(OpId op, bool comma);
  void checkDefaults(OpId op);

  // parse_regions.cc
  bool region(OpId op);              // "{ ^bb0(...): ops }"
  bool regionBody(RegionId region);  // ops up to '}', which is taken
  bool blockArgs(RegionId region);   // "%a: t loc(..), ...)"
  bool prettyReduce(OpId op);
  bool prettyWhile(OpId op);
  bool manualComputation(OpId op);
  bool prettyScan(OpId op);
  bool namedComputation(OpId op);
  bool computationBody(OpId op);

  Cursor c;
  hlo::Module& m;
  DiagnosticSink& sink_;
  const std::string filename_, base_;
  const bool any_entry_;
  RegionId region_;  // where ops go now
  bool in_module_ = false;  // of the generic form
  hlo::FuncId func_;
  uint32_t depth_ = 0;  // of scopes
  int nesting_ = 0;     // of attributes and types
  bool saw_file_loc_ = false;
  bool trailing_comma_ = false;  // operandList took a comma in front of something else
  RegionId applied_region_;      // made for "applies stablehlo.add" by the op that is being read
  bool bools_ = false;           // ints() reads truth values
  bool in_keyword_ = false;      // "dim = 0 : (t) -> t": the colon belongs to the op

  std::vector<Alias> numbered_locs_;  // #locN by N + 1; #loc is 0
  llvm::StringMap<Alias> aliases_;    // the others, with '#' or '!' in front
  llvm::StringMap<hlo::MeshId> meshes_;
  llvm::StringMap<llvm::StringRef> resources_;  // their data in hexadecimal digits
  bool resources_read_ = false;

  std::vector<Binding> numbered_;  // %12
  llvm::DenseMap<llvm::StringRef, Binding> named_;
  struct Undo {
    llvm::StringRef name;
    Binding old;
  };
  std::vector<Undo> undo_;
  TupleParts tuple_parts_;
  std::string scratch_;
};

/// Deepest nesting of regions, types and attributes, and of locations, that is followed.
inline constexpr int kMaxDepth = 128;
inline constexpr int kMaxLocDepth = 1000;
inline constexpr size_t kMaxRank = 255;

}  // namespace tpu::frontend
