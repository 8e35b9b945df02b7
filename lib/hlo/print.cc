// The text view: one line per op, values numbered per function.
#include "tpu/hlo/print.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "tpu/hlo/infer.h"
#include "tpu/hlo/literal.h"

namespace tpu::hlo {

std::string axisText(const Mesh& mesh, const AxisRef& axis) {
  const MeshAxis& full = mesh.axes[axis.axis];
  if (axis.pre == 1 && axis.size == full.size) return full.name;
  return full.name + ":(" + llvm::itostr(axis.pre) + ")" + llvm::itostr(axis.size);
}

namespace {

std::string axesText(const Mesh& mesh, llvm::ArrayRef<AxisRef> axes) {
  std::string text;
  for (const AxisRef& axis : axes) text += (text.empty() ? "" : ",") + axisText(mesh, axis);
  return text;
}

class Printer {
 public:
  Printer(const Module& module, llvm::raw_ostream& os, const PrintOptions& options)
      : m(module), os(os), options_(options) {}

  void run() {
    os << "module @" << m.name << (m.stage == Stage::kSpmd ? " spmd" : " hlo");
    if (!m.target.empty()) os << ' ' << m.target;
    if (m.num_partitions != 1) os << " partitions=" << m.num_partitions;
    if (m.num_replicas != 1) os << " replicas=" << m.num_replicas;
    os << '\n';
    for (const Mesh& mesh : m.meshes) printMesh(mesh);
    for (const Func& func : m.funcs) printFunc(func);
  }

 private:
  void printMesh(const Mesh& mesh) {
    os << "mesh @" << mesh.name;
    for (const MeshAxis& axis : mesh.axes) os << ' ' << axis.name << '=' << axis.size;
    if (mesh.maximal_device >= 0) os << " device=" << mesh.maximal_device;
    if (!mesh.device_ids.empty()) list(" devices=", mesh.device_ids);
    os << '\n';
  }

  void list(llvm::StringRef before, llvm::ArrayRef<int64_t> values) {
    os << before << '[';
    llvm::interleave(
        values, os, [&](int64_t v) { os << v; }, ",");
    os << ']';
  }

  void type(TypeId id) { os << typeText(m, id); }

  void sharding(ShardingId id) {
    if (options_.shardings && id) os << ' ' << shardingText(m, id);
  }

  void port(const Port* port) {
    if (!port) return;
    if (port->global_type) {
      os << " of ";
      type(port->global_type);
    }
    sharding(port->sharding);
    if (port->alias >= 0) os << " alias=" << port->alias;
    if (port->donated) os << " donated";
    if (!port->attrs.empty()) os << " {" << port->attrs << '}';
  }

  void name(StringId id) {
    if (id && !m.string(id).empty()) {
      os << " \"";
      llvm::printEscapedString(m.string(id), os);
      os << '"';
    }
  }

  void printFunc(const Func& func) {
    names_.clear();
    next_value_ = next_arg_ = 0;
    os << (func.is_private ? "private func @" : "func @") << m.string(func.name) << '(';
    const Region& body = m.region(func.body);
    for (size_t i = 0; i < body.args.size(); ++i) {
      if (i) os << ", ";
      const Port* p = i < func.arg_ports.size() ? &func.arg_ports[i] : nullptr;
      os << "%a" << next_arg_;
      names_[body.args[i].v] = "a" + std::to_string(next_arg_++);
      if (p) name(p->name);
      os << ": ";
      type(m.value(body.args[i]).type);
      port(p);
    }
    os << ") -> (";
    for (size_t i = 0; i < func.result_types.size(); ++i) {
      if (i) os << ", ";
      type(func.result_types[i]);
      const Port* p = i < func.result_ports.size() ? &func.result_ports[i] : nullptr;
      if (p) name(p->name);
      port(p);
    }
    os << ")\n";
    for (OpId op : body.ops) printOp(op, 1);
  }

  void printOp(OpId id, unsigned indent) {
    const Op& op = m.op(id);
    os.indent(2 * indent);
    for (size_t i = 0; i < op.results.size(); ++i) {
      os << (i ? ", %" : "%") << next_value_;
      names_[op.results[i].v] = std::to_string(next_value_++);
    }
    if (!op.results.empty()) os << " = ";
    os << opInfo(op.opcode).mnemonic;
    for (size_t i = 0; i < op.operands.size(); ++i) os << (i ? ", %" : " %") << names_[op.operands[i].v];
    attrs(op);
    for (size_t i = 0; i < op.results.size(); ++i) {
      os << (i ? ", " : " : ");
      type(m.value(op.results[i]).type);
      sharding(m.value(op.results[i]).sharding);
    }
    if (options_.locations && !m.loc(op.loc).empty()) os << "  ; " << m.loc(op.loc);
    os << '\n';
    for (RegionId region : op.regions) printRegion(region, indent);
  }

  void printRegion(RegionId id, unsigned indent) {
    const Region& region = m.region(id);
    os.indent(2 * indent) << "{";
    for (size_t i = 0; i < region.args.size(); ++i) {
      os << (i ? ", %a" : "(%a") << next_arg_ << ": ";
      names_[region.args[i].v] = "a" + std::to_string(next_arg_++);
      type(m.value(region.args[i]).type);
      sharding(m.value(region.args[i]).sharding);
    }
    os << (region.args.empty() ? "\n" : ")\n");
    for (OpId op : region.ops) printOp(op, indent + 1);
    os.indent(2 * indent) << "}\n";
  }

  void attrs(const Op& op) {
    bool first = true;
    for (AttrId id : op.attrs) {
      const Attr& attr = m.attr(id);
      if (attr.key == AttrKey::result_shardings || (attr.kind == AttrKind::kSharding && !options_.shardings))
        continue;
      os << (first ? " {" : ", ") << attrName(attr.key) << '=';
      first = false;
      value(attr);
    }
    if (!first) os << '}';
  }

  void value(const Attr& attr) {
    switch (attr.kind) {
      case AttrKind::kBool:
        os << (attr.i ? "true" : "false");
        return;
      case AttrKind::kInt:
        os << attr.i;
        return;
      case AttrKind::kFloat: {
        uint8_t bytes[8];
        storeDouble(ElementType::kF64, attr.f, bytes);
        os << elementText(ElementType::kF64, bytes);
        return;
      }
      case AttrKind::kInts:
      case AttrKind::kBools:
        list("", attr.ints);
        return;
      case AttrKind::kString:
      case AttrKind::kEnum:
      case AttrKind::kText:
        os << attr.str;
        return;
      case AttrKind::kStrings:
        os << '[';
        llvm::interleave(attr.strs, os, ",");
        os << ']';
        return;
      case AttrKind::kLiteral:
        literal(m.literal(attr.literal));
        return;
      case AttrKind::kType:
        type(attr.type);
        return;
      case AttrKind::kTypes:
        for (int64_t t : attr.ints) type(TypeId(static_cast<uint32_t>(t)));
        return;
      case AttrKind::kSharding:
        if (attr.sharding) os << shardingText(m, attr.sharding);
        return;
      case AttrKind::kShardings:
        os << '[';
        llvm::interleave(
            attr.ints, os, [&](int64_t s) { os << shardingText(m, ShardingId(static_cast<uint32_t>(s))); },
            ", ");
        os << ']';
        return;
      case AttrKind::kAxes:
        os << '{' << (attr.mesh ? axesText(m.meshes[attr.mesh.v], attr.axes) : std::string()) << '}';
        return;
      case AttrKind::kGroups:
        os << '[';
        for (int64_t row = 0; row < attr.groups.rows; ++row)
          list(row ? "," : "", llvm::ArrayRef<int64_t>(attr.groups.ids)
                                   .slice(static_cast<size_t>(row * attr.groups.cols),
                                          static_cast<size_t>(attr.groups.cols)));
        os << ']';
        return;
    }
  }

  // The first elements only: goldens show what a constant is, not all of it.
  void literal(const Literal& literal) {
    const Type& type = m.type(literal.type);
    if (literal.splat) {
      os << elementText(type.element, literal.bytes.data());
      return;
    }
    constexpr int64_t kShown = 16;
    int64_t count = type.numElements();
    os << '[';
    for (int64_t i = 0; i < std::min(count, kShown); ++i)
      os << (i ? "," : "") << elementText(type.element, literalElement(m, literal, i));
    if (count > kShown) os << ",... " << count << " elements";
    os << ']';
  }

  const Module& m;
  llvm::raw_ostream& os;
  const PrintOptions options_;
  llvm::DenseMap<uint32_t, std::string> names_;
  size_t next_value_ = 0, next_arg_ = 0;
};

}  // namespace

std::string shardingText(const Module& module, ShardingId id) {
  if (!id) return "none";
  const Sharding& sharding = module.sharding(id);
  const Mesh& mesh = module.meshes[sharding.mesh.v];
  std::string text = module.meshes.size() > 1 ? "@" + mesh.name + " [" : "[";
  for (size_t i = 0; i < sharding.dims.size(); ++i) {
    const DimSharding& dim = sharding.dims[i];
    std::string axes = axesText(mesh, dim.axes);
    if (dim.open) axes += axes.empty() ? "?" : ",?";
    text += (i ? ", {" : "{") + axes + "}";
    if (dim.priority >= 0) text += "p" + std::to_string(dim.priority);
  }
  text += "]";
  if (!sharding.replicated.empty()) text += " replicated={" + axesText(mesh, sharding.replicated) + "}";
  if (!sharding.unreduced.empty()) text += " unreduced={" + axesText(mesh, sharding.unreduced) + "}";
  return text;
}

void print(const Module& module, llvm::raw_ostream& os, const PrintOptions& options) {
  Printer(module, os, options).run();
}

std::string toText(const Module& module, const PrintOptions& options) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(module, os, options);
  return text;
}

}  // namespace tpu::hlo
