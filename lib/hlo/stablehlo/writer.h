// The writer of StableHLO text, one class over several files.
#pragma once
#include "llvm/ADT/DenseMap.h"
#include "tpu/hlo/stablehlo.h"

namespace tpu::hlo {

class StableHloWriter {
 public:
  StableHloWriter(const Module& module, llvm::raw_ostream& os) : m(module), os(os) {}
  void run();

 private:
  // writer.cc
  void mesh(const Mesh& mesh);
  void func(const Func& func);
  void port(const Port* port, bool is_arg);
  void block(RegionId region, unsigned indent, llvm::StringRef dialect);
  void op(OpId id, unsigned indent, llvm::StringRef dialect);
  void generic(OpId id, unsigned indent, llvm::StringRef dialect);
  void pretty(OpId id, unsigned indent);
  void regions(const Op& op, unsigned indent);
  void signature(const Op& op);
  void operands(const Op& op);
  void args(llvm::ArrayRef<ValueId> args);
  void result(const Op& op);
  void loc(LocId id);
  void quoted(llvm::StringRef text);
  void symbol(llvm::StringRef name);

  // attrs.cc
  void attrs(OpId id);
  void attr(OpId id, const Attr& attr);
  void item(llvm::StringRef name);  // ", name" of a dictionary's next entry
  void ints(const Attr& attr);
  void structs(OpId id);
  bool inStruct(AttrKey key, Opcode opcode);
  void lists(OpId id, llvm::StringRef head, llvm::ArrayRef<AttrKey> keys);
  void convolution(OpId id);
  void side(OpId id, llvm::StringRef first_role, AttrKey first, llvm::StringRef second_role, AttrKey second,
            AttrKey spatial);
  void groups(const Groups& groups);

  // values.cc
  void type(TypeId id);
  void types(llvm::ArrayRef<TypeId> types);
  void literal(const Literal& literal);
  void element(ElementType type, const uint8_t* bytes);
  /// `rank`, `values`: of what is sharded, for where there is none.
  void sharding(ShardingId id, int64_t rank = 0);
  void shardings(llvm::ArrayRef<int64_t> ids, llvm::ArrayRef<ValueId> values);
  void axisNames(const Mesh& mesh, llvm::ArrayRef<AxisRef> axes);
  void meshBody(const Mesh& mesh);

  const Module& m;
  llvm::raw_ostream& os;
  llvm::DenseMap<uint32_t, std::string> names_;
  size_t next_ = 0, next_arg_ = 0;
  bool first_ = true;  // of the dictionary that is being written
};

}  // namespace tpu::hlo
