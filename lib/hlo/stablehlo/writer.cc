// Modules, functions and operations as StableHLO text.
#include "writer.h"

#include "llvm/ADT/StringExtras.h"

namespace tpu::hlo {

void writeStableHlo(const Module& module, llvm::raw_ostream& os) { StableHloWriter(module, os).run(); }

void StableHloWriter::run() {
  os << "module";
  if (!m.name.empty()) {
    os << ' ';
    symbol(m.name);
  }
  first_ = true;
  auto entry = [&](llvm::StringRef name, llvm::StringRef value) {
    os << (first_ ? " attributes {" : ", ");
    first_ = false;
    if (llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$'; }))
      os << name;
    else
      quoted(name);
    if (!value.empty()) os << " = " << value;
  };
  if (m.num_partitions != 1) entry("mhlo.num_partitions", llvm::itostr(m.num_partitions) + " : i32");
  if (m.num_replicas != 1) entry("mhlo.num_replicas", llvm::itostr(m.num_replicas) + " : i32");
  for (const auto& [name, value] : m.attrs)
    if (m.stage == Stage::kHlo || name != "mhlo.input_output_alias") entry(name, value);
  os << (first_ ? " {\n" : "} {\n");
  for (const Mesh& one : m.meshes)
    if (!one.name.empty()) mesh(one);
  for (const Func& one : m.funcs) func(one);
  os << "}\n";
}

void StableHloWriter::quoted(llvm::StringRef text) {
  os << '"';
  llvm::printEscapedString(text, os);
  os << '"';
}

void StableHloWriter::symbol(llvm::StringRef name) {
  os << '@';
  bool plain = !name.empty() && (llvm::isAlpha(name[0]) || name[0] == '_');
  for (char c : name) plain = plain && (llvm::isAlnum(c) || c == '_' || c == '$' || c == '.');
  if (plain)
    os << name;
  else
    quoted(name);
}

// "model.py:12:5" and "model.py:12" are places in a file; for none an empty name stands.
void StableHloWriter::loc(LocId id) {
  auto [file, line] = m.loc(id).rsplit(':');
  llvm::StringRef column = "0";
  unsigned number;
  if (auto [before, middle] = file.rsplit(':'); !before.empty() && !middle.getAsInteger(10, number)) {
    column = line;
    line = middle;
    file = before;
  }
  if (file.empty() || line.getAsInteger(10, number) || column.getAsInteger(10, number)) {
    os << " loc(\"\")";
    return;
  }
  os << " loc(";
  quoted(file);
  os << ':' << line << ':' << column << ')';
}

void StableHloWriter::mesh(const Mesh& mesh) {
  os << "  sdy.mesh ";
  symbol(mesh.name);
  os << " = ";
  meshBody(mesh);
  os << '\n';
}

void StableHloWriter::port(const Port* port, bool is_arg) {
  if (!port) return;
  first_ = true;
  auto next = [&](llvm::StringRef name) {
    os << (first_ ? " {" : ", ") << name;
    first_ = false;
  };
  if (is_arg && port->donated) next("jax.buffer_donor = true");
  if (port->name && !m.string(port->name).empty()) {
    next(is_arg ? "jax.arg_info = " : "jax.result_info = ");
    quoted(m.string(port->name));
  }
  if (!port->attrs.empty()) next(port->attrs);
  if (port->sharding && m.stage == Stage::kHlo) {
    next("sdy.sharding = #sdy.sharding");
    sharding(port->sharding);
  }
  if (is_arg && port->alias >= 0) {
    next("tf.aliasing_output = ");
    os << port->alias << " : i32";
  }
  if (!first_) os << '}';
}

void StableHloWriter::func(const Func& func) {
  names_.clear();
  next_ = next_arg_ = 0;
  os << "  func.func " << (func.is_private ? "private " : "public ");
  symbol(m.string(func.name));
  os << '(';
  const Region& body = m.region(func.body);
  for (size_t i = 0; i < body.args.size(); ++i) {
    std::string name = "%arg" + std::to_string(next_arg_++);
    names_[body.args[i].v] = name;
    os << (i ? ", " : "") << name << ": ";
    type(m.value(body.args[i]).type);
    port(i < func.arg_ports.size() ? &func.arg_ports[i] : nullptr, true);
    loc(m.value(body.args[i]).loc);
  }
  os << ") -> (";
  for (size_t i = 0; i < func.result_types.size(); ++i) {
    os << (i ? ", " : "");
    type(func.result_types[i]);
    port(i < func.result_ports.size() ? &func.result_ports[i] : nullptr, false);
  }
  os << ") {\n";
  block(func.body, 2, "func");
  os << "  }";
  loc(func.loc);
  os << '\n';
}

void StableHloWriter::block(RegionId region, unsigned indent, llvm::StringRef dialect) {
  for (OpId id : m.region(region).ops) op(id, indent, dialect);
}

void StableHloWriter::args(llvm::ArrayRef<ValueId> args) {
  os << '(';
  for (size_t i = 0; i < args.size(); ++i) {
    std::string name = "%arg" + std::to_string(next_arg_++);
    names_[args[i].v] = name;
    os << (i ? ", " : "") << name << ": ";
    type(m.value(args[i]).type);
    loc(m.value(args[i]).loc);
  }
  os << ')';
}

void StableHloWriter::result(const Op& op) {
  if (op.results.empty()) return;
  std::string name = "%" + std::to_string(next_++);
  os << name;
  if (op.results.size() > 1) os << ':' << op.results.size();
  os << " = ";
  for (size_t i = 0; i < op.results.size(); ++i)
    names_[op.results[i].v] = op.results.size() > 1 ? name + "#" + std::to_string(i) : name;
}

void StableHloWriter::operands(const Op& op) {
  llvm::interleaveComma(op.operands, os, [&](ValueId v) { os << names_[v.v]; });
}

void StableHloWriter::signature(const Op& op) {
  llvm::SmallVector<TypeId, 8> in, out;
  for (ValueId v : op.operands) in.push_back(m.value(v).type);
  for (ValueId v : op.results) out.push_back(m.value(v).type);
  os << " : ";
  types(in);
  os << " -> ";
  types(out);
}

void StableHloWriter::op(OpId id, unsigned indent, llvm::StringRef dialect) {
  switch (m.op(id).opcode) {
    case Opcode::sdy_manual_computation:
    case Opcode::sdy_named_computation:
    case Opcode::sdy_all_gather:
    case Opcode::sdy_all_slice:
    case Opcode::sdy_all_to_all:
    case Opcode::sdy_all_reduce:
    case Opcode::sdy_reduce_scatter:
    case Opcode::sdy_propagation_barrier:
      os.indent(2 * indent);
      pretty(id, indent);
      break;
    default:
      os.indent(2 * indent);
      generic(id, indent, dialect);
  }
  loc(m.op(id).loc);
  os << '\n';
}

void StableHloWriter::generic(OpId id, unsigned indent, llvm::StringRef dialect) {
  const Op& op = m.op(id);
  result(op);
  os << '"';
  if (op.opcode == Opcode::return_)
    os << dialect << ".return";
  else
    os << opInfo(op.opcode).name;
  os << "\"(";
  operands(op);
  os << ')';
  if (!op.regions.empty()) regions(op, indent);
  attrs(id);
  signature(op);
}

void StableHloWriter::regions(const Op& op, unsigned indent) {
  os << " (";
  for (size_t i = 0; i < op.regions.size(); ++i) {
    const Region& region = m.region(op.regions[i]);
    os << (i ? ", {\n" : "{\n");
    if (!region.args.empty()) {
      os.indent(2 * indent) << "^bb0";
      args(region.args);
      os << ":\n";
    }
    block(op.regions[i], indent + 1, "stablehlo");
    os.indent(2 * indent) << '}';
  }
  os << ')';
}

// Operations of sdy whose attributes have no spelling outside of their own syntax.
void StableHloWriter::pretty(OpId id, unsigned indent) {
  const Op& op = m.op(id);
  result(op);
  os << opInfo(op.opcode).name;
  bool named = op.opcode == Opcode::sdy_named_computation;
  if (op.opcode == Opcode::sdy_propagation_barrier) {
    os << ' ';
    operands(op);
    os << " allowed_direction=" << m.getString(id, AttrKey::allowed_direction) << " : ";
    type(m.value(op.results[0]).type);
    return;
  }
  if (op.regions.empty()) {
    os << ' ' << m.getString(id, AttrKey::dim_axes) << ' ';
    operands(op);
    if (const Attr* out = m.findAttr(id, AttrKey::sharding)) {
      os << " out_sharding=";
      sharding(out->sharding, m.typeOf(op.results[0]).rank());
    }
    os << " : ";
    type(m.value(op.results[0]).type);
    return;
  }
  if (named) {
    os << '<';
    quoted(m.getString(id, AttrKey::computation_name));
    os << '>';
  }
  os << '(';
  operands(op);
  os << ')';
  for (AttrKey key : {AttrKey::in_shardings, AttrKey::out_shardings}) {
    if (named && !m.has(id, key)) continue;
    os << ' ' << attrName(key) << '=';
    shardings(m.getInts(id, key), key == AttrKey::in_shardings ? llvm::ArrayRef<ValueId>(op.operands) : llvm::ArrayRef<ValueId>(op.results));
  }
  if (const Attr* manual = m.findAttr(id, AttrKey::manual_axes)) {
    os << " manual_axes=";
    axisNames(manual->mesh ? m.meshes[manual->mesh.v] : Mesh(), manual->axes);
  }
  os << ' ';
  args(m.region(op.regions[0]).args);
  os << " {\n";
  block(op.regions[0], indent + 1, "sdy");
  os.indent(2 * indent) << '}';
  signature(op);
}

}  // namespace tpu::hlo
