// Interning of types, strings, locations and shardings, and the literal table.
#include "interner.h"

namespace tpu::hlo {
namespace {

// DenseMap reserves the two largest keys.
uint64_t key(llvm::hash_code code) { return static_cast<size_t>(code) >> 2; }

uint64_t hashType(TypeKind kind, ElementType element, llvm::ArrayRef<int64_t> dims,
                  llvm::ArrayRef<TypeId> elements, llvm::StringRef encoding) {
  llvm::hash_code code = llvm::hash_combine(static_cast<int>(kind), static_cast<int>(element),
                                            llvm::hash_combine_range(dims.begin(), dims.end()), encoding);
  for (TypeId id : elements) code = llvm::hash_combine(code, id.v);
  return key(code);
}

bool sameType(const Type& a, TypeKind kind, ElementType element, llvm::ArrayRef<int64_t> dims,
              llvm::ArrayRef<TypeId> elements, llvm::StringRef encoding) {
  return a.kind == kind && a.element == element && llvm::ArrayRef<int64_t>(a.dims) == dims &&
         llvm::ArrayRef<TypeId>(a.elements) == elements && a.encoding == encoding;
}

llvm::hash_code hashAxes(llvm::hash_code code, llvm::ArrayRef<AxisRef> axes) {
  code = llvm::hash_combine(code, axes.size());
  for (const AxisRef& axis : axes) code = llvm::hash_combine(code, axis.axis, axis.pre, axis.size);
  return code;
}

uint64_t hashSharding(const Sharding& sharding) {
  llvm::hash_code code = llvm::hash_combine(sharding.mesh.v, sharding.dims.size());
  for (const DimSharding& dim : sharding.dims) {
    code = llvm::hash_combine(code, dim.open, dim.priority);
    code = hashAxes(code, dim.axes);
  }
  code = hashAxes(code, sharding.replicated);
  return key(hashAxes(code, sharding.unreduced));
}

}  // namespace

int64_t Type::numElements() const {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

Groups groupsAlong(const Mesh& mesh, llvm::ArrayRef<AxisRef> axes) {
  int64_t devices = mesh.numDevices(), size = 1;
  for (const AxisRef& axis : axes) size *= axis.size;
  Groups groups;
  groups.rows = devices / size;
  groups.cols = size;
  groups.ids.assign(static_cast<size_t>(devices), 0);
  llvm::DenseMap<int64_t, int64_t> rows;  // by the group's first position
  for (int64_t position = 0; position < devices; ++position) {
    int64_t rank = 0, base = position;
    for (const AxisRef& axis : axes) {
      int64_t stride = 1;
      for (size_t a = axis.axis + 1; a < mesh.axes.size(); ++a) stride *= mesh.axes[a].size;
      stride *= mesh.axes[axis.axis].size / (axis.pre * axis.size);
      int64_t digit = position / stride % axis.size;
      rank = rank * axis.size + digit;
      base -= digit * stride;
    }
    int64_t row = rows.try_emplace(base, static_cast<int64_t>(rows.size())).first->second;
    size_t at = static_cast<size_t>(position);
    groups.ids[static_cast<size_t>(row * size + rank)] =
        mesh.device_ids.empty() ? position : mesh.device_ids[at];
  }
  return groups;
}

int64_t Mesh::numDevices() const {
  int64_t count = 1;
  for (const MeshAxis& axis : axes) count *= axis.size;
  return count;
}

int Mesh::findAxis(llvm::StringRef name) const {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].name == name) return static_cast<int>(i);
  return -1;
}

TypeId Module::tensorType(ElementType element, llvm::ArrayRef<int64_t> dims) {
  uint64_t hash = hashType(TypeKind::kTensor, element, dims, {}, "");
  auto equal = [&](uint32_t id) { return sameType(types_[id], TypeKind::kTensor, element, dims, {}, ""); };
  if (auto id = interner_->types.find(hash, equal)) return TypeId(*id);
  uint32_t id = static_cast<uint32_t>(types_.size());
  Type type;  // filled before the table grows: dims may be a view of another type's
  type.element = element;
  type.dims.assign(dims.begin(), dims.end());
  types_.push_back(std::move(type));
  interner_->types.add(hash, id);
  return TypeId(id);
}

TypeId Module::internType(const Type& type) {
  uint64_t hash = hashType(type.kind, type.element, type.dims, type.elements, type.encoding);
  auto equal = [&](uint32_t id) {
    return sameType(types_[id], type.kind, type.element, type.dims, type.elements, type.encoding);
  };
  if (auto id = interner_->types.find(hash, equal)) return TypeId(*id);
  uint32_t id = static_cast<uint32_t>(types_.size());
  types_.push_back(type);
  interner_->types.add(hash, id);
  return TypeId(id);
}

TypeId Module::tokenType() {
  Type type;
  type.kind = TypeKind::kToken;
  return internType(type);
}

StringId Module::internString(llvm::StringRef text) { return StringId(interner_->strings.intern(text)); }
llvm::StringRef Module::string(StringId id) const { return interner_->strings.text(id.v); }
LocId Module::internLoc(llvm::StringRef text) { return LocId(interner_->locs.intern(text)); }
llvm::StringRef Module::loc(LocId id) const { return interner_->locs.text(id.v); }

ShardingId Module::internSharding(const Sharding& sharding) {
  uint64_t hash = hashSharding(sharding);
  auto equal = [&](uint32_t id) { return shardings_[id] == sharding; };
  if (auto id = interner_->shardings.find(hash, equal)) return ShardingId(*id);
  uint32_t id = static_cast<uint32_t>(shardings_.size());
  shardings_.push_back(sharding);
  interner_->shardings.add(hash, id);
  return ShardingId(id);
}

LiteralId Module::addLiteral(Literal literal) {
  literals_.push_back(std::move(literal));
  return LiteralId(static_cast<uint32_t>(literals_.size() - 1));
}

Module::Module() : interner_(std::make_unique<Interner>()) {}
Module::Module(Module&&) noexcept = default;
Module& Module::operator=(Module&&) noexcept = default;
Module::~Module() = default;

Module Module::clone() const {
  Module copy;
  copy.stage = stage;
  copy.name = name;
  copy.num_partitions = num_partitions;
  copy.num_replicas = num_replicas;
  copy.target = target;
  copy.chip_json = chip_json;
  copy.source_file = source_file;
  copy.attrs = attrs;
  copy.options = options;
  copy.meshes = meshes;
  copy.funcs = funcs;
  copy.entry = entry;
  copy.whys = whys;
  copy.device_order = device_order;
  copy.types_ = types_;
  copy.values_ = values_;
  copy.ops_ = ops_;
  copy.regions_ = regions_;
  copy.attr_rows_ = attr_rows_;
  copy.literals_ = literals_;
  copy.shardings_ = shardings_;
  for (llvm::StringRef text : interner_->strings.all()) copy.interner_->strings.intern(text);
  for (llvm::StringRef text : interner_->locs.all()) copy.interner_->locs.intern(text);
  copy.interner_->types = interner_->types;
  copy.interner_->shardings = interner_->shardings;
  return copy;
}

}  // namespace tpu::hlo
