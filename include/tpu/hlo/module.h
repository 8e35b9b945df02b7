// HLO in memory: a program as flat tables owned by one Module, rows referred to by 32-bit ids.
//
// A module has functions; a function has one body region; a region is one block: arguments, then operations in order.
// Operations own their nested regions (while, if, case, reduce, sort, manual_computation ...). Values are SSA and are
// visible in nested regions. Types, locations, strings and shardings are interned. Attributes are flat (key, value)
// pairs; which keys an op takes stands in ops.def. Passes edit in place (Builder, replaceAllUses, erase) and the
// verifier (verify.h) is run after each.
//
// The same structure serves stage `hlo` (global types, shardings as wishes) and stage `spmd` (per-device types, explicit
// collectives over mesh axes or replica groups).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "tpu/support/element_type.h"
#include "tpu/support/ids.h"

namespace tpu::hlo {

using TypeId = Id<struct TypeTag>;
using ValueId = Id<struct ValueTag>;
using OpId = Id<struct OpTag>;
using RegionId = Id<struct RegionTag>;
using FuncId = Id<struct FuncTag>;
using LocId = Id<struct LocTag>;
using StringId = Id<struct StringTag>;
using LiteralId = Id<struct LiteralTag>;
using ShardingId = Id<struct ShardingTag>;
using MeshId = Id<struct MeshTag>;
using AttrId = Id<struct AttrTag>;

using Dims = llvm::SmallVector<int64_t, 6>;
inline constexpr int64_t kDynamicDim = INT64_MIN;

// ---------------------------------------------------------------- ops
/// One enumerator per row of ops.def: the mnemonic, with '_' appended to C++ keywords (and_, or_, not_, xor_, while_,
/// if_, case_, return_) and the dialect in front for other dialects than stablehlo (chlo_square, sdy_manual_computation).
/// func.call is `call`; func.return, stablehlo.return and sdy.return are all `return_`.
enum class Opcode : uint16_t {
#define TPU_HLO_OP(id, ...) id,
#include "tpu/hlo/ops.def"
};

/// Attribute keys: the specification's names, structured attributes flattened (lhs_contracting_dimensions, offset_dims,
/// input_batch_dimension ...). One list in attrs.def with the kind of the value.
enum class AttrKey : uint16_t {
#define TPU_HLO_ATTR(id, kind) id,
#include "tpu/hlo/attrs.def"
};

enum class AttrKind : uint8_t { kBool, kInt, kFloat, kInts, kBools, kString, kStrings, kLiteral, kEnum, kType, kTypes,
                                kSharding, kShardings, kAxes, kGroups, kText };

/// A sub-axis "x":(pre)size of Shardy's model; the full axis has pre 1 and size = the axis's size.
struct AxisRef {
  uint32_t axis = 0;  // index into Mesh::axes
  int64_t pre = 1;
  int64_t size = 1;
  friend bool operator==(const AxisRef&, const AxisRef&) = default;
};

/// Groups of devices as listed by the program: rows of equal or ragged length, -1 pads.
struct Groups {
  int64_t rows = 0, cols = 0;
  std::vector<int64_t> ids;  // row-major rows x cols
};

struct Attr {
  AttrKey key;
  AttrKind kind;
  int64_t i = 0;                         // kBool, kInt, kEnum (index into the key's enum spelling table)
  double f = 0;                          // kFloat
  llvm::SmallVector<int64_t, 4> ints;    // kInts, kBools, kTypes (type ids), kShardings (sharding ids)
  std::string str;                       // kString, kText (balanced text kept as printed), kEnum (spelling)
  std::vector<std::string> strs;         // kStrings
  LiteralId literal;                     // kLiteral
  TypeId type;                           // kType
  ShardingId sharding;                   // kSharding
  MeshId mesh;                           // kAxes
  llvm::SmallVector<AxisRef, 2> axes;    // kAxes: major to minor
  Groups groups;                         // kGroups (replica_groups, source_target_pairs: cols 2)
};

// ---------------------------------------------------------------- types, literals, shardings
enum class TypeKind : uint8_t { kTensor, kToken, kTuple };
struct Type {
  TypeKind kind = TypeKind::kTensor;
  ElementType element = ElementType::kF32;
  Dims dims;                              // kTensor
  llvm::SmallVector<TypeId, 2> elements;  // kTuple
  std::string encoding;                   // bounds, quantization: balanced text, usually empty
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  /// Product of dims (1 for rank 0).
  int64_t numElements() const;
};

/// Constant data in host layout: row-major, hostBytes(element) per element; one element where splat.
struct Literal {
  TypeId type;
  bool splat = false;
  std::vector<uint8_t> bytes;
};

struct MeshAxis {
  std::string name;
  int64_t size = 1;
};
struct Mesh {
  std::string name;
  std::vector<MeshAxis> axes;       // major to minor
  std::vector<int64_t> device_ids;  // empty: 0,1,2...
  int64_t maximal_device = -1;      // >= 0: a maximal mesh (no axes, one device)
  int64_t numDevices() const;
  int findAxis(llvm::StringRef name) const;  // -1 when absent
};

/// The groups of devices that differ along `axes` alone, each in the order of the axes, major to minor.
Groups groupsAlong(const Mesh& mesh, llvm::ArrayRef<AxisRef> axes);

struct DimSharding {
  llvm::SmallVector<AxisRef, 2> axes;  // major to minor
  bool open = false;                   // may be sharded further
  int priority = -1;                   // -1: none given
  friend bool operator==(const DimSharding&, const DimSharding&) = default;
};
struct Sharding {
  MeshId mesh;
  std::vector<DimSharding> dims;             // one per tensor dimension
  llvm::SmallVector<AxisRef, 2> replicated;  // explicitly replicated axes
  llvm::SmallVector<AxisRef, 2> unreduced;
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

// ---------------------------------------------------------------- values, ops, regions, functions
struct Value {
  TypeId type;
  OpId def;          // the op whose result this is, or none for a block argument
  RegionId region;   // the region whose argument this is, or none
  uint32_t index = 0;  // which result or argument
  LocId loc;
  ShardingId sharding;  // none: no wish (hlo) / replicated (spmd)
  StringId name;        // the user's name where the text has one
};

struct Op {
  Opcode opcode;
  RegionId parent;  // none once erased
  llvm::SmallVector<ValueId, 3> operands;
  llvm::SmallVector<ValueId, 1> results;
  llvm::SmallVector<RegionId, 0> regions;
  llvm::SmallVector<AttrId, 2> attrs;
  LocId loc;
};

struct Region {
  OpId parent_op;    // none for a function body
  FuncId func;       // the function whose body this is or lies in
  std::vector<ValueId> args;
  std::vector<OpId> ops;  // in order; the last is return_
};

/// Facts about one argument or result of a function beyond its value: shardings, user names, donation.
struct Port {
  TypeId global_type;         // spmd: the type of the whole array (the value's own type is per device); none in hlo
  ShardingId sharding;
  StringId name;              // JAX's argument or result name ("params.layers.0.w1"), may be empty
  int alias = -1;             // argument: the result it may alias (tf.aliasing_output); -1 none
  bool donated = false;       // jax.buffer_donor
  std::string attrs;          // remaining attributes as balanced text
};

struct Func {
  StringId name;
  bool is_private = false;
  RegionId body;
  std::vector<TypeId> result_types;
  std::vector<Port> arg_ports, result_ports;
  LocId loc;
};

/// Why a collective exists: written by the partitioner, one row per inserted collective.
struct Why {
  OpId op;
  std::string code;       // "contract-dim", "reshard", "halo", "user" ...
  OpId needed_by;         // the op that forced it (an op of the same module)
  std::string asked_at;   // location of the request
  std::string before, after;  // shardings as text
  std::string reason;
  std::string remove_by;
};

enum class Stage : uint8_t { kHlo, kSpmd };

class Module {
 public:
  Module();
  Module(Module&&) noexcept;
  Module& operator=(Module&&) noexcept;
  ~Module();
  Module clone() const;

  Stage stage = Stage::kHlo;
  std::string name;            // module @name
  int64_t num_partitions = 1, num_replicas = 1;
  std::string target;          // "v5e:4x2" once partitioned, else empty
  std::string chip_json;       // the description of the target's chip where that is a user's file, else empty
  std::string source_file;     // base name of the text it was read from
  std::vector<std::pair<std::string, std::string>> attrs;     // other module attributes, balanced text
  std::vector<std::pair<std::string, std::string>> options;   // effective options of the tools so far
  std::vector<Mesh> meshes;
  std::vector<Func> funcs;
  FuncId entry;                // @main, or the only public function
  std::vector<Why> whys;
  std::vector<int64_t> device_order;  // spmd: topology position of each mesh position; empty: identity

  // --- interning
  TypeId tensorType(ElementType element, llvm::ArrayRef<int64_t> dims);
  TypeId internType(const Type& type);
  TypeId tokenType();
  const Type& type(TypeId id) const { return types_[id.v]; }
  StringId internString(llvm::StringRef text);
  llvm::StringRef string(StringId id) const;  // empty for none
  /// Locations as readable text, "model.py:12:5"; intern the rendered string.
  LocId internLoc(llvm::StringRef text);
  llvm::StringRef loc(LocId id) const;  // empty for none
  ShardingId internSharding(const Sharding& sharding);
  const Sharding& sharding(ShardingId id) const { return shardings_[id.v]; }
  LiteralId addLiteral(Literal literal);
  const Literal& literal(LiteralId id) const { return literals_[id.v]; }

  // --- rows
  const Op& op(OpId id) const { return ops_[id.v]; }
  Op& op(OpId id) { return ops_[id.v]; }
  const Value& value(ValueId id) const { return values_[id.v]; }
  Value& value(ValueId id) { return values_[id.v]; }
  const Region& region(RegionId id) const { return regions_[id.v]; }
  Region& region(RegionId id) { return regions_[id.v]; }
  const Func& func(FuncId id) const { return funcs[id.v]; }
  const Attr& attr(AttrId id) const { return attr_rows_[id.v]; }
  size_t numOps() const { return ops_.size(); }  // erased ones included
  size_t numValues() const { return values_.size(); }
  size_t numRegions() const { return regions_.size(); }
  size_t numTypes() const { return types_.size(); }
  size_t numShardings() const { return shardings_.size(); }
  size_t numLiterals() const { return literals_.size(); }
  const Type& typeOf(ValueId v) const { return type(values_[v.v].type); }

  // --- construction and editing
  RegionId addRegion(OpId parent_op, FuncId func);
  ValueId addArg(RegionId region, TypeId type, LocId loc);
  /// Adds a function with an empty body region (func(id).body). The caller fills result_types and ports.
  FuncId addFunc(llvm::StringRef name, bool is_private);
  /// Appends an op with results of the given types. Regions are added afterwards through addRegion(op, func), which
  /// also appends them to op.regions.
  OpId append(RegionId region, Opcode opcode, llvm::ArrayRef<ValueId> operands, llvm::ArrayRef<TypeId> results, LocId loc);
  /// Inserts before position `at` of the region's op list.
  OpId insert(RegionId region, size_t at, Opcode opcode, llvm::ArrayRef<ValueId> operands, llvm::ArrayRef<TypeId> results, LocId loc);
  /// Creates an op that is in no region's list yet: for passes that rebuild a region's `ops` vector in one sweep.
  OpId create(RegionId region, Opcode opcode, llvm::ArrayRef<ValueId> operands, llvm::ArrayRef<TypeId> results, LocId loc);
  /// Gives an op one more result.
  ValueId addResult(OpId op, TypeId type);
  /// Every use of `from` in ops of all regions becomes `to`. Linear in the module; passes that replace much keep a map
  /// and rewrite operands in one sweep instead (replaceUses).
  void replaceAllUses(ValueId from, ValueId to);
  /// One sweep: operand v becomes map[v.v] where that is valid (map is indexed by value id; chains are followed).
  void replaceUses(llvm::ArrayRef<ValueId> map);
  /// Removes an op (and its regions' ops) from its region's list; its row stays as a hole.
  void erase(OpId op);
  FuncId findFunc(llvm::StringRef name) const;

  // --- attributes
  const Attr* findAttr(OpId op, AttrKey key) const;  // null when absent
  bool has(OpId op, AttrKey key) const { return findAttr(op, key) != nullptr; }
  int64_t getInt(OpId op, AttrKey key, int64_t otherwise = 0) const;
  double getFloat(OpId op, AttrKey key, double otherwise = 0) const;
  llvm::ArrayRef<int64_t> getInts(OpId op, AttrKey key) const;  // empty when absent
  llvm::StringRef getString(OpId op, AttrKey key) const;        // empty when absent; also an enum's spelling
  bool getBool(OpId op, AttrKey key, bool otherwise = false) const { return getInt(op, key, otherwise) != 0; }
  /// Sets an attribute, replacing one of the same key. An op's attributes are kept in the order of attrs.def.
  void setAttr(OpId op, Attr attr);
  void setInt(OpId op, AttrKey key, int64_t value);
  void setInts(OpId op, AttrKey key, llvm::ArrayRef<int64_t> value);
  void setBool(OpId op, AttrKey key, bool value) { setInt(op, key, value); }
  /// For kString, kText and kEnum keys; an enum's spelling must be one of enumSpellings(key).
  void setString(OpId op, AttrKey key, llvm::StringRef value);
  void setStrings(OpId op, AttrKey key, llvm::ArrayRef<std::string> value);
  void setLiteral(OpId op, LiteralId value);  // key `value`
  void setSharding(OpId op, AttrKey key, ShardingId value);
  void setAxes(OpId op, AttrKey key, MeshId mesh, llvm::ArrayRef<AxisRef> axes);
  void setGroups(OpId op, AttrKey key, Groups value);
  /// Copies all attributes of another op of this module.
  void copyAttrs(OpId from, OpId to);
  void removeAttr(OpId op, AttrKey key);

 private:
  std::vector<Type> types_;
  std::vector<Value> values_;
  std::vector<Op> ops_;
  std::vector<Region> regions_;
  std::vector<Attr> attr_rows_;
  std::vector<Literal> literals_;
  std::vector<Sharding> shardings_;
  struct Interner;  // hash tables for types, strings, locations, shardings
  std::unique_ptr<Interner> interner_;
};

// ---------------------------------------------------------------- op facts
enum Trait : uint32_t {
  kElementwise = 1u << 0,      // result[i] depends on operand[i] alone, same dims
  kCommutative = 1u << 1,
  kTerminator = 1u << 2,
  kCollective = 1u << 3,
  kControl = 1u << 4,          // while, if, case, call, manual_computation
  kSideEffect = 1u << 5,
  kDataMovement = 1u << 6,     // values are moved, never computed
  kSameTypeResult = 1u << 7,   // result type = type of operand 0
};
struct OpInfo {
  Opcode opcode;
  llvm::StringRef name;      // "stablehlo.add"
  llvm::StringRef mnemonic;  // "add": the name in documents
  int min_operands, max_operands;  // -1: any number
  int results;                     // -1: any number
  int regions;                     // -1: any number
  uint32_t traits;
  llvm::StringRef doc;  // one sentence
};
const OpInfo& opInfo(Opcode opcode);
std::optional<Opcode> findOpcode(llvm::StringRef name);  // full name or mnemonic
inline bool hasTrait(Opcode opcode, Trait trait) { return (opInfo(opcode).traits & trait) != 0; }
llvm::StringRef attrName(AttrKey key);
AttrKind attrKind(AttrKey key);
std::optional<AttrKey> findAttrKey(llvm::StringRef name);
/// The spellings of an enum attribute (Attr::i indexes them); empty for other kinds.
llvm::ArrayRef<llvm::StringRef> enumSpellings(AttrKey key);

/// Attr::i of comparison_direction, in the order of its spellings.
enum class Comparison : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };
/// Attr::i of compare_type.
enum class CompareType : uint8_t { kNoType, kFloat, kTotalOrder, kSigned, kUnsigned };
/// Attr::i of fft_type.
enum class FftType : uint8_t { kFft, kIfft, kRfft, kIrfft };

}  // namespace tpu::hlo
