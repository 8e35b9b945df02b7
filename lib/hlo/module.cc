// Rows of a Module: construction, editing and attributes.
#include "tpu/hlo/module.h"

#include <algorithm>
#include <cassert>

#include "interner.h"

namespace tpu::hlo {

RegionId Module::addRegion(OpId parent_op, FuncId func) {
  RegionId id(static_cast<uint32_t>(regions_.size()));
  Region& region = regions_.emplace_back();
  region.parent_op = parent_op;
  region.func = func;
  if (parent_op)
    ops_[parent_op.v].regions.push_back(id);
  else if (func)
    funcs[func.v].body = id;
  return id;
}

ValueId Module::addArg(RegionId region, TypeId type, LocId loc) {
  ValueId id(static_cast<uint32_t>(values_.size()));
  Value& value = values_.emplace_back();
  value.type = type;
  value.region = region;
  value.index = static_cast<uint32_t>(regions_[region.v].args.size());
  value.loc = loc;
  regions_[region.v].args.push_back(id);
  return id;
}

FuncId Module::addFunc(llvm::StringRef name, bool is_private) {
  FuncId id(static_cast<uint32_t>(funcs.size()));
  Func& func = funcs.emplace_back();
  func.name = internString(name);
  func.is_private = is_private;
  addRegion(OpId(), id);
  return id;
}

OpId Module::create(RegionId region, Opcode opcode, llvm::ArrayRef<ValueId> operands,
                    llvm::ArrayRef<TypeId> results, LocId loc) {
  OpId id(static_cast<uint32_t>(ops_.size()));
  Op row;  // filled before the table grows: operands may be a view of another op's row
  row.opcode = opcode;
  row.parent = region;
  row.operands.assign(operands.begin(), operands.end());
  row.loc = loc;
  ops_.push_back(std::move(row));
  for (TypeId type : results) addResult(id, type);
  return id;
}

ValueId Module::addResult(OpId id, TypeId type) {
  Op& op = ops_[id.v];
  ValueId result(static_cast<uint32_t>(values_.size()));
  Value& value = values_.emplace_back();
  value.type = type;
  value.def = id;
  value.index = static_cast<uint32_t>(op.results.size());
  value.loc = op.loc;
  op.results.push_back(result);
  return result;
}

OpId Module::append(RegionId region, Opcode opcode, llvm::ArrayRef<ValueId> operands,
                    llvm::ArrayRef<TypeId> results, LocId loc) {
  OpId id = create(region, opcode, operands, results, loc);
  regions_[region.v].ops.push_back(id);
  return id;
}

OpId Module::insert(RegionId region, size_t at, Opcode opcode, llvm::ArrayRef<ValueId> operands,
                    llvm::ArrayRef<TypeId> results, LocId loc) {
  OpId id = create(region, opcode, operands, results, loc);
  std::vector<OpId>& list = regions_[region.v].ops;
  assert(at <= list.size());
  list.insert(list.begin() + static_cast<ptrdiff_t>(at), id);
  return id;
}

void Module::replaceAllUses(ValueId from, ValueId to) {
  for (Op& op : ops_)
    for (ValueId& operand : op.operands)
      if (operand == from) operand = to;
}

void Module::replaceUses(llvm::ArrayRef<ValueId> map) {
  for (Op& op : ops_)
    for (ValueId& operand : op.operands)
      while (operand.v < map.size() && map[operand.v]) operand = map[operand.v];
}

void Module::erase(OpId id) {
  Op& op = ops_[id.v];
  if (op.parent) {
    std::vector<OpId>& list = regions_[op.parent.v].ops;
    auto it = std::find(list.begin(), list.end(), id);
    if (it != list.end()) list.erase(it);
  }
  llvm::SmallVector<OpId> pending = {id};
  while (!pending.empty()) {
    Op& dead = ops_[pending.pop_back_val().v];
    dead.parent = RegionId();
    for (RegionId region : dead.regions)
      pending.append(regions_[region.v].ops.begin(), regions_[region.v].ops.end());
  }
}

FuncId Module::findFunc(llvm::StringRef name) const {
  std::optional<uint32_t> text = interner_->strings.find(name);
  if (!text) return FuncId();
  for (size_t i = 0; i < funcs.size(); ++i)
    if (funcs[i].name.v == *text) return FuncId(static_cast<uint32_t>(i));
  return FuncId();
}

const Attr* Module::findAttr(OpId op, AttrKey key) const {
  for (AttrId id : ops_[op.v].attrs)
    if (attr_rows_[id.v].key == key) return &attr_rows_[id.v];
  return nullptr;
}

int64_t Module::getInt(OpId op, AttrKey key, int64_t otherwise) const {
  const Attr* attr = findAttr(op, key);
  return attr ? attr->i : otherwise;
}

double Module::getFloat(OpId op, AttrKey key, double otherwise) const {
  const Attr* attr = findAttr(op, key);
  return attr ? attr->f : otherwise;
}

llvm::ArrayRef<int64_t> Module::getInts(OpId op, AttrKey key) const {
  const Attr* attr = findAttr(op, key);
  return attr ? llvm::ArrayRef<int64_t>(attr->ints) : llvm::ArrayRef<int64_t>();
}

llvm::StringRef Module::getString(OpId op, AttrKey key) const {
  const Attr* attr = findAttr(op, key);
  return attr ? llvm::StringRef(attr->str) : llvm::StringRef();
}

void Module::setAttr(OpId op, Attr attr) {
  llvm::SmallVectorImpl<AttrId>& list = ops_[op.v].attrs;
  size_t at = list.size();
  while (at > 0 && attr_rows_[list[at - 1].v].key >= attr.key) --at;
  if (at < list.size() && attr_rows_[list[at].v].key == attr.key) {
    attr_rows_[list[at].v] = std::move(attr);
    return;
  }
  list.insert(list.begin() + static_cast<ptrdiff_t>(at), AttrId(static_cast<uint32_t>(attr_rows_.size())));
  attr_rows_.push_back(std::move(attr));
}

namespace {
Attr makeAttr(AttrKey key) {
  Attr attr;
  attr.key = key;
  attr.kind = attrKind(key);
  return attr;
}
}  // namespace

void Module::setInt(OpId op, AttrKey key, int64_t value) {
  Attr attr = makeAttr(key);
  attr.i = value;
  if (attr.kind == AttrKind::kEnum) attr.str = enumSpellings(key)[static_cast<size_t>(value)].str();
  setAttr(op, std::move(attr));
}

void Module::setInts(OpId op, AttrKey key, llvm::ArrayRef<int64_t> value) {
  Attr attr = makeAttr(key);
  attr.ints.assign(value.begin(), value.end());
  setAttr(op, std::move(attr));
}

void Module::setString(OpId op, AttrKey key, llvm::StringRef value) {
  Attr attr = makeAttr(key);
  attr.str = value.str();
  if (attr.kind == AttrKind::kEnum) {
    llvm::ArrayRef<llvm::StringRef> spellings = enumSpellings(key);
    attr.i = std::find(spellings.begin(), spellings.end(), value) - spellings.begin();
    assert(attr.i < static_cast<int64_t>(spellings.size()));
  }
  setAttr(op, std::move(attr));
}

void Module::setStrings(OpId op, AttrKey key, llvm::ArrayRef<std::string> value) {
  Attr attr = makeAttr(key);
  attr.strs.assign(value.begin(), value.end());
  setAttr(op, std::move(attr));
}

void Module::setLiteral(OpId op, LiteralId value) {
  Attr attr = makeAttr(AttrKey::value);
  attr.literal = value;
  setAttr(op, std::move(attr));
}

void Module::setSharding(OpId op, AttrKey key, ShardingId value) {
  Attr attr = makeAttr(key);
  attr.sharding = value;
  setAttr(op, std::move(attr));
}

void Module::setAxes(OpId op, AttrKey key, MeshId mesh, llvm::ArrayRef<AxisRef> axes) {
  Attr attr = makeAttr(key);
  attr.mesh = mesh;
  attr.axes.assign(axes.begin(), axes.end());
  setAttr(op, std::move(attr));
}

void Module::setGroups(OpId op, AttrKey key, Groups value) {
  Attr attr = makeAttr(key);
  attr.groups = std::move(value);
  setAttr(op, std::move(attr));
}

void Module::copyAttrs(OpId from, OpId to) {
  llvm::SmallVector<AttrId, 8> ids(ops_[from.v].attrs.begin(), ops_[from.v].attrs.end());
  for (AttrId id : ids) setAttr(to, Attr(attr_rows_[id.v]));
}

void Module::removeAttr(OpId op, AttrKey key) {
  llvm::erase_if(ops_[op.v].attrs, [&](AttrId id) { return attr_rows_[id.v].key == key; });
}

}  // namespace tpu::hlo
