// The module, its functions and operations.
//
// A portable artifact is a builtin.module of vhlo.func_v1 functions. Operations of other dialects (sdy, chlo)
// keep the types of StableHLO, so casts stand between them and those of vhlo; here both are the same types
// and a cast is the value that it casts.
#include "import.h"

#include "llvm/ADT/StringExtras.h"

namespace tpu::frontend::bytecode {

std::optional<OpRow> findOp(llvm::StringRef name) {
  static const llvm::StringMap<OpRow> rows = [] {
    llvm::StringMap<OpRow> map;
#define BYTECODE_OP(name, opcode, properties) map[name] = {hlo::Opcode::opcode, properties};
#include "ops.def"
    return map;
  }();
  auto it = rows.find(name);
  if (it != rows.end()) return it->second;
  if (!name.starts_with("chlo.") && !name.starts_with("sdy.")) return std::nullopt;
  if (auto opcode = hlo::findOpcode(name)) return OpRow{*opcode, ""};
  return std::nullopt;
}

Importer::Importer(const File& file, Entries& entries, llvm::StringRef filename, hlo::Module& module)
    : f(file),
      e(entries),
      text_(entries),
      m(module),
      base_(baseName(filename)),
      values_(file.num_values),
      types_(file.types.size()),
      types_open_(file.types.size()) {}

bool Importer::run(bool any_entry) {
  m.source_file = base_;
  const RawOp& top = f.ops[f.top];
  if (nameOf(top) != "builtin.module" || top.regions.size() != 1)
    return e.fail(Code::kUnknownOp, top.offset, "expected a module, found '" + nameOf(top) + "'");
  if (!moduleAttrs(top)) return false;
  const RawRegion& region = f.regions[top.regions[0]];
  for (uint32_t id : region.ops)
    if (nameOf(f.ops[id]) == "sdy.mesh" && !meshOp(f.ops[id])) return false;
  for (uint32_t id : region.ops) {
    const std::string& name = nameOf(f.ops[id]);
    if (name == "sdy.mesh") continue;
    if (name != "vhlo.func_v1")
      return e.fail(Code::kUnknownOp, f.ops[id].offset, "unknown operation '" + name + "' in a module");
    if (!func(f.ops[id])) return false;
  }
  if (std::string why = chooseEntry(m, any_entry); !why.empty())
    return e.fail(Code::kUnknownName, top.offset, why);
  applyModuleAliases(m);
  return !e.failed();
}

bool Importer::names(const RawOp& op, llvm::StringRef properties, Named& named) {
  llvm::StringMap<bool> seen;
  auto add = [&](llvm::StringRef name, uint32_t row) {
    if (!seen.try_emplace(name, true).second) return fail(op, "attribute '" + name + "' stands twice");
    named.push_back({name, row});
    return true;
  };
  auto addDict = [&](uint32_t row) {
    const AttrNode* node = e.attr(row);
    if (!node) return false;
    if (node->tag != AttrTag::kDict) return fail(op, "the attributes are no dictionary");
    for (size_t i = 0; i < (*node)[0].list.size(); i += 2) {
      auto name = text_.string(static_cast<uint32_t>((*node)[0].list[i]));
      if (!name) return fail(op, "an attribute has no name");
      if (!add(*name, static_cast<uint32_t>((*node)[0].list[i + 1]))) return false;
    }
    return true;
  };
  if (op.properties != kNone && !f.op_names[op.name].registered) {
    if (!addDict(op.properties)) return false;
  } else if (op.properties != kNone) {
    llvm::StringRef data = f.properties[op.properties];
    Bytes in = e.bytes(data);
    llvm::SmallVector<llvm::StringRef, 8> list;
    properties.split(list, ' ', -1, false);
    for (llvm::StringRef name : list) {
      bool optional = name.consume_back("?"), present = true;
      uint64_t row;
      if (optional ? !in.flagged(row, present) : !in.varint(row)) return false;
      if (!present) continue;
      if (row >= f.attrs.size()) return in.fail("attribute " + llvm::Twine(row) + " is referred to");
      if (!add(name, static_cast<uint32_t>(row))) return false;
    }
    if (in.left()) return in.fail("operation '" + nameOf(op) + "' has more properties than are known");
  }
  return op.attrs == kNone || addDict(op.attrs);
}

bool Importer::moduleAttrs(const RawOp& op) {
  Named named;
  if (!names(op, "sym_name? sym_visibility?", named)) return false;
  for (auto [name, row] : named) {
    const AttrNode* node = e.attr(row);
    if (!node) return false;
    if (name == "sym_name") {
      if (auto text = text_.string(row)) m.name = text->str();
    } else if (name == "mhlo.num_partitions" || name == "mhlo.num_replicas") {
      int64_t& count = name == "mhlo.num_partitions" ? m.num_partitions : m.num_replicas;
      if (!intValue(*node, count)) return false;
      if (count < 1 || count > (int64_t{1} << 31)) return fail(op, "bad number of devices");
    } else if (name != "sym_visibility") {
      m.attrs.push_back({name.str(), node->tag == AttrTag::kUnit ? "" : text_.attr(row)});
    }
  }
  return !e.failed();
}

bool Importer::func(const RawOp& op) {
  Named named;
  if (!names(op, "arg_attrs function_type res_attrs sym_name sym_visibility", named)) return false;
  uint32_t args = kNone, results = kNone, type = kNone;
  llvm::StringRef name, visibility;
  for (auto [key, row] : named) {
    if (key == "arg_attrs") args = row;
    if (key == "res_attrs") results = row;
    if (key == "function_type") type = row;
    if (key == "sym_name") name = text_.string(row).value_or("");
    if (key == "sym_visibility") visibility = text_.string(row).value_or("");
  }
  const AttrNode* attr = type == kNone ? nullptr : e.attr(type);
  const TypeNode* node = attr && attr->tag == AttrTag::kType ? e.type((*attr)[0].row()) : nullptr;
  if (e.failed()) return false;
  if (name.empty() || !node || node->tag != TypeTag::kFunction)
    return fail(op, "a function has no name or no type");
  if (m.findFunc(name))
    return e.fail(Code::kRepeatedName, op.offset, "function '@" + name + "' is defined twice");
  if (op.regions.size() != 1) return fail(op, "function '@" + name + "' has no body");
  func_ = m.addFunc(name, visibility == "private");
  m.funcs[func_.v].loc = locId(op.loc);

  const RawRegion& raw = f.regions[op.regions[0]];
  if (raw.args.size() != (*node)[0].list.size())
    return fail(op, "function '@" + name + "' has another number of arguments than its type");
  std::vector<hlo::Port> arg_ports(raw.args.size()), result_ports((*node)[1].list.size());
  if (!ports(op, args, arg_ports) || !ports(op, results, result_ports)) return false;
  for (uint64_t row : (*node)[1].list) {
    TypeId id = this->type(static_cast<uint32_t>(row));
    if (e.failed()) return false;
    m.funcs[func_.v].result_types.push_back(id);
  }
  m.funcs[func_.v].result_ports = std::move(result_ports);
  hlo::RegionId region = m.func(func_).body;
  if (!body(raw, region)) return false;
  for (size_t i = 0; i < raw.args.size(); ++i) {
    ValueId arg = m.region(region).args[i];
    if (m.value(arg).type != this->type(static_cast<uint32_t>((*node)[0].list[i])))
      return fail(op, "an argument of '@" + name + "' has another type than the function says");
    // JAX names arguments by a location without a file.
    Location loc = raw.args[i].loc == kNone ? Location() : location(raw.args[i].loc);
    if (!loc.file && !loc.name.empty()) arg_ports[i].name = m.internString(loc.name);
    m.value(arg).sharding = arg_ports[i].sharding;
    m.value(arg).name = arg_ports[i].name;
  }
  m.funcs[func_.v].arg_ports = std::move(arg_ports);
  return true;
}

bool Importer::ports(const RawOp& op, uint32_t attrs, std::vector<hlo::Port>& ports) {
  if (attrs == kNone) return true;
  const AttrNode* list = e.attr(attrs);
  if (!list) return false;
  if (list->tag != AttrTag::kArray) return fail(op, "the attributes of arguments or results are no list");
  const auto& rows = (*list)[0].list;
  if (rows.empty()) return true;
  if (rows.size() != ports.size()) return fail(op, "attributes of another number of arguments or results");
  for (size_t i = 0; i < rows.size(); ++i) {
    const AttrNode* dict = e.attr(static_cast<uint32_t>(rows[i]));
    if (!dict) return false;
    if (dict->tag != AttrTag::kDict) return fail(op, "the attributes of an argument are no dictionary");
    const auto& entries = (*dict)[0].list;
    for (size_t k = 0; k < entries.size(); k += 2) {
      auto name = text_.string(static_cast<uint32_t>(entries[k]));
      if (!name) return fail(op, "an attribute has no name");
      if (!portAttr(op, *name, static_cast<uint32_t>(entries[k + 1]), ports[i])) return false;
    }
  }
  return true;
}

bool Importer::portAttr(const RawOp& op, llvm::StringRef name, uint32_t row, hlo::Port& port) {
  const AttrNode* node = e.attr(row);
  if (!node) return false;
  if (name == "sdy.sharding") return sharding(row, port.sharding);
  int64_t number;
  if (name == "tf.aliasing_output") {
    if (!intValue(*node, number)) return false;
    port.alias = static_cast<int>(number);
  } else if (name == "jax.buffer_donor") {
    if (!intValue(*node, number)) return false;
    port.donated = number != 0;
  } else if (name == "jax.result_info" || name == "jax.arg_info") {
    auto text = text_.string(row);
    if (!text) return fail(op, "'" + name + "' is no text");
    if (!text->empty()) port.name = m.internString(*text);
  } else {
    if (!port.attrs.empty()) port.attrs += ", ";
    port.attrs += Text::attrName(name);
    if (node->tag != AttrTag::kUnit) port.attrs += " = " + text_.attr(row);
  }
  return !e.failed();
}

bool Importer::types(llvm::ArrayRef<uint32_t> rows, llvm::SmallVectorImpl<TypeId>& types) {
  for (uint32_t row : rows) {
    types.push_back(type(row));
    if (e.failed()) return false;
  }
  return true;
}

bool Importer::operands(const RawOp& raw, llvm::SmallVectorImpl<ValueId>& values) {
  for (uint32_t value : raw.operands) {
    if (!values_[value]) return fail(raw, "a value is used before it is defined");
    values.push_back(values_[value]);
  }
  return true;
}

bool Importer::body(const RawRegion& raw, hlo::RegionId region) {
  for (const BlockArg& arg : raw.args) {
    TypeId id = type(arg.type);
    if (e.failed()) return false;
    values_[arg.value] = m.addArg(region, id, locId(arg.loc));
  }
  for (uint32_t op : raw.ops)
    if (!operation(f.ops[op], region)) return false;
  return !e.failed();
}

bool Importer::cast(const RawOp& raw) {
  llvm::SmallVector<ValueId, 4> values;
  llvm::SmallVector<TypeId, 4> results;
  if (!operands(raw, values) || !types(raw.result_types, results)) return false;
  if (values.size() != results.size() || !raw.regions.empty()) return fail(raw, "a cast that does not cast");
  for (size_t i = 0; i < values.size(); ++i) {
    if (m.value(values[i]).type != results[i]) return fail(raw, "a cast to another type");
    values_[raw.first_result + i] = values[i];
  }
  return true;
}

bool Importer::operation(const RawOp& raw, hlo::RegionId region) {
  const std::string& name = nameOf(raw);
  if (name == "builtin.unrealized_conversion_cast") return cast(raw);
  auto row = findOp(name);
  if (!row) return e.fail(Code::kUnknownOp, raw.offset, "unknown operation '" + name + "'");
  llvm::SmallVector<ValueId, 8> values;
  llvm::SmallVector<TypeId, 4> results;
  if (!operands(raw, values) || !types(raw.result_types, results)) return false;
  OpId op = m.append(region, row->opcode, values, results, locId(raw.loc));
  for (size_t i = 0; i < results.size(); ++i) {
    ValueId result = m.op(op).results[i];
    values_[raw.first_result + i] = result;
    m.value(result).loc = m.op(op).loc;
  }
  Named named;
  if (!names(raw, row->properties, named)) return false;
  llvm::stable_sort(named, [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto [key, attr] : named)
    if (!attribute(op, key, attr)) return false;
  if (row->opcode == hlo::Opcode::dot_general && !dotAlgorithm(op, named)) return false;
  if (row->opcode == hlo::Opcode::sdy_manual_computation && !manualAxes(op, named)) return false;
  for (uint32_t id : raw.regions)
    if (!body(f.regions[id], m.addRegion(op, func_))) return false;
  if (const hlo::Attr* attr = m.findAttr(op, AttrKey::result_shardings))
    for (size_t i = 0; i < attr->ints.size() && i < results.size(); ++i)
      m.value(m.op(op).results[i]).sharding = hlo::ShardingId(static_cast<uint32_t>(attr->ints[i]));
  fillDefaults(m, op);
  return !e.failed();
}

}  // namespace tpu::frontend::bytecode
