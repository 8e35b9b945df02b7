// Writing a program as a document.
#include "ids.h"
#include "llvm/ADT/DenseMap.h"
#include "tpu/hlo/analysis.h"
#include "tpu/hlo/document.h"
#include "tpu/hlo/infer.h"
#include "tpu/hlo/literal.h"
#include "tpu/hlo/print.h"
#include "tpu/serial/base64.h"
#include "tpu/serial/document.h"

namespace tpu::hlo {
namespace {

int64_t sum(int64_t a, int64_t b) {
  int64_t total;
  return __builtin_add_overflow(a, b, &total) ? INT64_MAX : total;
}

class Writer {
 public:
  Writer(const Module& module, llvm::raw_ostream& os, llvm::StringRef only)
      : m(module), doc_(os, module.stage == Stage::kHlo ? "hlo" : "spmd", only) {}

  llvm::Error run() {
    number();
    header();
    pairs("attributes", m.attrs);
    pairs("options", m.options);
    meshes();
    shardings();
    literals();
    funcs();
    ports();
    regions();
    ops();
    whys();
    return doc_.finish();
  }

 private:
  // ---------------------------------------------------------------- ids

  void number() {
    op_ids_.assign(m.numOps(), OpId::kNone);
    trips_.assign(m.numRegions(), 1);
    for (const Func& func : m.funcs) numberRegion(func.body, 1);
    numberShardings();
  }

  /// Only shardings that something refers to are written: what passes leave behind may name axes that are gone.
  void numberShardings() {
    std::vector<bool> used(m.numShardings(), false);
    auto use = [&](ShardingId id) {
      if (id) used[id.v] = true;
    };
    for (const Func& func : m.funcs) {
      for (const Port& p : func.arg_ports) use(p.sharding);
      for (const Port& p : func.result_ports) use(p.sharding);
    }
    for (RegionId r : reached_)
      for (ValueId v : m.region(r).args) use(m.value(v).sharding);
    for (OpId id : order_) {
      for (ValueId v : m.op(id).results) use(m.value(v).sharding);
      for (AttrId a : m.op(id).attrs) {
        use(m.attr(a).sharding);
        if (m.attr(a).kind == AttrKind::kShardings)
          for (int64_t v : m.attr(a).ints) use(ShardingId(static_cast<uint32_t>(v)));
      }
    }
    sharding_ids_.assign(used.size(), ShardingId::kNone);
    uint32_t next = 0;
    for (size_t i = 0; i < used.size(); ++i)
      if (used[i]) sharding_ids_[i] = next++;
  }

  void numberRegion(RegionId region, int64_t trips) {
    trips_[region.v] = trips;
    reached_.push_back(region);
    for (OpId id : m.region(region).ops) {
      op_ids_[id.v] = static_cast<uint32_t>(order_.size());
      order_.push_back(id);
      int64_t inner = trips;
      if (m.op(id).opcode == Opcode::while_) {
        int64_t count = tripCount(m, id).value_or(1);
        if (__builtin_mul_overflow(inner, count, &inner)) inner = INT64_MAX;
      }
      for (RegionId nested : m.op(id).regions) numberRegion(nested, inner);
    }
  }

  std::string ref(ValueId id) const {
    const Value& value = m.value(id);
    if (value.def) {
      std::string text = std::to_string(op_ids_[value.def.v]);
      if (m.op(value.def).results.size() > 1) text += "." + std::to_string(value.index);
      return text;
    }
    const Region& region = m.region(value.region);
    if (!region.parent_op) return "a" + std::to_string(value.index);
    return "r" + std::to_string(op_ids_[region.parent_op.v]) + "." +
           std::to_string(regionIndex(value.region)) + "." + std::to_string(value.index);
  }

  size_t regionIndex(RegionId id) const {
    const auto& regions = m.op(m.region(id).parent_op).regions;
    return static_cast<size_t>(std::find(regions.begin(), regions.end(), id) - regions.begin());
  }

  // ---------------------------------------------------------------- tables

  void header() {
    doc_.field("name").string(m.name);
    if (!m.source_file.empty()) doc_.field("source").string(m.source_file);
    if (!m.target.empty()) doc_.field("target").string(m.target);
    if (!m.chip_json.empty()) doc_.field("chip").string(m.chip_json);
    doc_.field("partitions").integer(m.num_partitions);
    doc_.field("replicas").integer(m.num_replicas);
    if (m.entry) doc_.field("entry").string(m.string(m.func(m.entry).name));
    if (!m.device_order.empty()) doc_.field("device_order").ints(m.device_order);
  }

  void pairs(llvm::StringRef table, llvm::ArrayRef<std::pair<std::string, std::string>> rows) {
    doc_.beginTable(table);
    for (const auto& [name, value] : rows)
      doc_.row().beginObject().field("name", name).field("value", value).endObject();
    doc_.endTable();
  }

  void meshes() {
    doc_.beginTable("meshes");
    for (size_t i = 0; i < m.meshes.size(); ++i) {
      const Mesh& mesh = m.meshes[i];
      JsonWriter& w = doc_.row().beginObject().field("id", static_cast<int64_t>(i)).field("name", mesh.name);
      w.key("axes").beginArray();
      for (const MeshAxis& axis : mesh.axes) w.string(axis.name);
      w.endArray().key("sizes").beginArray();
      for (const MeshAxis& axis : mesh.axes) w.integer(axis.size);
      w.endArray();
      if (!mesh.device_ids.empty()) w.field("device_ids", llvm::ArrayRef<int64_t>(mesh.device_ids));
      if (mesh.maximal_device >= 0) w.field("device", mesh.maximal_device);
      w.endObject();
    }
    doc_.endTable();
  }

  void axes(JsonWriter& w, const Mesh& mesh, llvm::ArrayRef<AxisRef> list) {
    w.beginArray();
    for (const AxisRef& axis : list) w.string(axisText(mesh, axis));
    w.endArray();
  }

  void shardings() {
    doc_.beginTable("shardings");
    for (uint32_t i = 0; i < m.numShardings(); ++i) {
      if (sharding_ids_[i] == ShardingId::kNone) continue;
      const Sharding& sharding = m.sharding(ShardingId(i));
      const Mesh& mesh = m.meshes[sharding.mesh.v];
      JsonWriter& w = doc_.row().beginObject().field("id", sharding_ids_[i]).field("mesh", sharding.mesh.v);
      w.key("dims").beginArray();
      for (const DimSharding& dim : sharding.dims) axes(w, mesh, dim.axes);
      w.endArray();
      auto any = [&](auto test) { return llvm::any_of(sharding.dims, test); };
      if (any([](const DimSharding& d) { return d.open; })) {
        w.key("open").beginArray();
        for (const DimSharding& dim : sharding.dims) w.boolean(dim.open);
        w.endArray();
      }
      if (any([](const DimSharding& d) { return d.priority >= 0; })) {
        w.key("priorities").beginArray();
        for (const DimSharding& dim : sharding.dims) w.integer(dim.priority);
        w.endArray();
      }
      if (!sharding.replicated.empty()) axes(w.key("replicated"), mesh, sharding.replicated);
      if (!sharding.unreduced.empty()) axes(w.key("unreduced"), mesh, sharding.unreduced);
      w.endObject();
    }
    doc_.endTable();
  }

  // Those of large constants that ops still use, in order of first use.
  void literals() {
    doc_.beginTable("literals");
    for (OpId op : order_)
      for (AttrId id : m.op(op).attrs) {
        const Attr& attr = m.attr(id);
        if (attr.kind != AttrKind::kLiteral || m.literal(attr.literal).bytes.size() <= kInlineLiteral)
          continue;
        uint32_t next = static_cast<uint32_t>(literal_ids_.size());
        if (!literal_ids_.try_emplace(attr.literal.v, next).second) continue;
        JsonWriter& w = doc_.row().beginObject().field("id", next);
        type(w, m.literal(attr.literal).type);
        w.field("base64", encodeBase64(m.literal(attr.literal).bytes)).endObject();
      }
    doc_.endTable();
  }

  // The fields of a type inside an open object.
  void type(JsonWriter& w, TypeId id) {
    const Type& t = m.type(id);
    if (t.kind == TypeKind::kToken) {
      w.field("token", true);
    } else if (t.kind == TypeKind::kTuple) {
      w.key("tuple").beginArray();
      for (TypeId element : t.elements) {
        w.beginObject();
        type(w, element);
        w.endObject();
      }
      w.endArray();
    } else {
      w.field("dtype", elementTypeName(t.element));
      dims(w.key("dims"), t.dims);
      if (!t.encoding.empty()) w.field("encoding", t.encoding);
    }
  }

  // Dynamic dimensions are null.
  void dims(JsonWriter& w, llvm::ArrayRef<int64_t> list) {
    w.beginArray();
    for (int64_t dim : list) {
      if (dim == kDynamicDim)
        w.null();
      else
        w.integer(dim);
    }
    w.endArray();
  }

  void sharding(JsonWriter& w, ShardingId id) {
    if (id) w.field("sharding", sharding_ids_[id.v]);
  }

  void loc(JsonWriter& w, LocId id) {
    if (id) w.field("loc", m.loc(id));
  }

  void funcs() {
    doc_.beginTable("funcs");
    for (const Func& func : m.funcs) {
      JsonWriter& w =
          doc_.row().beginObject().field("fn", m.string(func.name)).field("private", func.is_private);
      w.field("args", static_cast<int64_t>(m.region(func.body).args.size()));
      w.field("results", static_cast<int64_t>(func.result_types.size()));
      loc(w, func.loc);
      w.endObject();
    }
    doc_.endTable();
  }

  void port(const Func& func, bool is_arg, size_t i) {
    TypeId t = is_arg ? m.value(m.region(func.body).args[i]).type : func.result_types[i];
    const std::vector<Port>& ports = is_arg ? func.arg_ports : func.result_ports;
    const Port none;
    const Port& p = i < ports.size() ? ports[i] : none;
    JsonWriter& w =
        doc_.row().beginObject().field("fn", m.string(func.name)).field("port", is_arg ? "arg" : "result");
    w.field("index", static_cast<int64_t>(i));
    if (p.name) w.field("name", m.string(p.name));
    type(w, t);
    if (p.global_type) dims(w.key("global"), m.type(p.global_type).dims);
    sharding(w, p.sharding);
    w.field("bytes", byteSize(m, t));
    if (p.alias >= 0) w.field("alias", p.alias);
    if (p.donated) w.field("donated", true);
    if (!p.attrs.empty()) w.field("attributes", p.attrs);
    if (is_arg) {
      const Value& value = m.value(m.region(func.body).args[i]);
      if (value.sharding != p.sharding)
        w.field("value_sharding", value.sharding ? static_cast<int64_t>(sharding_ids_[value.sharding.v]) : -1);
      loc(w, value.loc);
    }
    w.endObject();
  }

  void ports() {
    doc_.beginTable("ports");
    for (const Func& func : m.funcs) {
      for (size_t i = 0; i < m.region(func.body).args.size(); ++i) port(func, true, i);
      for (size_t i = 0; i < func.result_types.size(); ++i) port(func, false, i);
    }
    doc_.endTable();
  }

  void value(JsonWriter& w, const Value& v) {
    w.beginObject();
    type(w, v.type);
    sharding(w, v.sharding);
    if (v.name) w.field("name", m.string(v.name));
    if (v.region) loc(w, v.loc);
    w.endObject();
  }

  void regions() {
    doc_.beginTable("regions");
    for (OpId op : order_)
      for (size_t i = 0; i < m.op(op).regions.size(); ++i) {
        JsonWriter& w =
            doc_.row().beginObject().field("op", op_ids_[op.v]).field("region", static_cast<int64_t>(i));
        w.key("args").beginArray();
        for (ValueId arg : m.region(m.op(op).regions[i]).args) value(w, m.value(arg));
        w.endArray().endObject();
      }
    doc_.endTable();
  }

  void ops() {
    doc_.beginTable("ops");
    for (OpId id : order_) {
      const Op& op = m.op(id);
      const Region& region = m.region(op.parent);
      JsonWriter& w =
          doc_.row().beginObject().field("id", op_ids_[id.v]).field("fn", m.string(m.func(region.func).name));
      if (region.parent_op) {
        w.field("parent", op_ids_[region.parent_op.v]);
        w.field("region", static_cast<int64_t>(regionIndex(op.parent)));
      }
      w.field("op", opInfo(op.opcode).mnemonic);
      if (!op.operands.empty()) {
        w.key("in").beginArray();
        for (ValueId v : op.operands) w.string(ref(v));
        w.endArray();
      }
      if (!op.results.empty()) {
        w.key("out").beginArray();
        int64_t bytes = 0;
        for (ValueId v : op.results) {
          value(w, m.value(v));
          bytes = sum(bytes, byteSize(m, m.value(v).type));
        }
        w.endArray().field("bytes", bytes);
      }
      if (!op.attrs.empty()) attrs(w, op);
      if (m.stage == Stage::kSpmd && hasTrait(op.opcode, kCollective)) {
        if (op.opcode != Opcode::collective_permute) w.field("group", groupSize(m, id));
        w.field("wire_bytes", wireBytes(m, id));
      }
      if (region.parent_op) w.field("trips", trips_[op.parent.v]);
      loc(w, op.loc);
      w.endObject();
    }
    doc_.endTable();
  }

  void attrs(JsonWriter& w, const Op& op) {
    w.key("attrs").beginObject();
    for (AttrId id : op.attrs) {
      w.key(attrName(m.attr(id).key));
      attr(w, m.attr(id), op);
    }
    w.endObject();
  }

  void attr(JsonWriter& w, const Attr& a, const Op& op) {
    switch (a.kind) {
      case AttrKind::kBool:
        w.boolean(a.i != 0);
        return;
      case AttrKind::kInt:
        w.integer(a.i);
        return;
      case AttrKind::kFloat:
        w.number(a.f);
        return;
      case AttrKind::kInts:
        w.ints(a.ints);
        return;
      case AttrKind::kBools:
        w.beginArray();
        for (int64_t v : a.ints) w.boolean(v != 0);
        w.endArray();
        return;
      case AttrKind::kString:
      case AttrKind::kEnum:
      case AttrKind::kText:
        w.string(a.str);
        return;
      case AttrKind::kStrings:
        w.strings(a.strs);
        return;
      case AttrKind::kLiteral:
        literal(w, a.literal, op);
        return;
      case AttrKind::kSharding:
        if (a.sharding)
          w.uinteger(sharding_ids_[a.sharding.v]);
        else
          w.null();
        return;
      case AttrKind::kShardings:
        w.beginArray();
        for (int64_t v : a.ints) {
          if (static_cast<uint32_t>(v) == ShardingId::kNone)
            w.null();
          else
            w.uinteger(sharding_ids_[static_cast<uint32_t>(v)]);
        }
        w.endArray();
        return;
      case AttrKind::kAxes:
        w.beginObject();
        if (a.mesh) {
          w.field("mesh", a.mesh.v);
          axes(w.key("axes"), m.meshes[a.mesh.v], a.axes);
        }
        w.endObject();
        return;
      case AttrKind::kGroups:
        w.beginArray();
        for (int64_t row = 0; row < a.groups.rows; ++row)
          w.ints(llvm::ArrayRef<int64_t>(a.groups.ids)
                     .slice(static_cast<size_t>(row * a.groups.cols), static_cast<size_t>(a.groups.cols)));
        w.endArray();
        return;
      case AttrKind::kType:
      case AttrKind::kTypes:
        w.null();
        return;
    }
  }

  // {"splat":1.5}, {"bits":"7fc00000"}, {"dense":[1,2,3]}, {"base64":"..."} or {"literal":3}; with a type
  // where the op's result does not say it.
  void literal(JsonWriter& w, LiteralId id, const Op& op) {
    const Literal& l = m.literal(id);
    w.beginObject();
    if (auto it = literal_ids_.find(id.v); it != literal_ids_.end()) {
      w.field("literal", it->second).endObject();
      return;
    }
    bool stated = op.results.size() == 1 && m.value(op.results[0]).type == l.type;
    if (!stated) type(w, l.type);
    ElementType element = m.type(l.type).element;
    if (l.splat) {
      splat(w, element, l.bytes.data());
    } else if ((isInteger(element) || element == ElementType::kPred) &&
               m.type(l.type).numElements() <= kDenseElements) {
      w.key("dense").beginArray();
      for (int64_t i = 0; i < m.type(l.type).numElements(); ++i) integer(w, element, literalElement(m, l, i));
      w.endArray();
    } else {
      w.field("base64", encodeBase64(l.bytes));
    }
    w.endObject();
  }

  void integer(JsonWriter& w, ElementType element, const uint8_t* bytes) {
    if (element == ElementType::kU64)
      w.uinteger(loadBits(element, bytes));
    else
      w.integer(loadInt(element, bytes));
  }

  void splat(JsonWriter& w, ElementType element, const uint8_t* bytes) {
    if (element == ElementType::kPred || isInteger(element)) {
      integer(w.key("splat"), element, bytes);
      return;
    }
    if (isFloat(element)) {
      double value = loadDouble(element, bytes);
      bool exact =
          value - value == 0 && !(value == 0 && loadBits(element, bytes) != 0);  // finite, and no minus zero
      if (exact) {
        w.field("splat", value);
        return;
      }
    }
    w.field("bits", hexText(llvm::ArrayRef<uint8_t>(bytes, static_cast<size_t>(hostBytes(element)))));
  }

  void whys() {
    doc_.beginTable("whys");
    for (const Why& why : m.whys) {
      auto id = [&](OpId op) { return op.v < op_ids_.size() ? op_ids_[op.v] : OpId::kNone; };
      if (id(why.op) == OpId::kNone) continue;
      JsonWriter& w = doc_.row().beginObject().field("op", id(why.op)).field("code", why.code);
      if (id(why.needed_by) != OpId::kNone) w.field("for", id(why.needed_by));
      w.field("asked_at", why.asked_at).field("before", why.before).field("after", why.after);
      w.field("reason", why.reason).field("remove_by", why.remove_by).endObject();
    }
    doc_.endTable();
  }

  const Module& m;
  DocumentWriter doc_;
  std::vector<OpId> order_;
  std::vector<RegionId> reached_;
  std::vector<uint32_t> op_ids_;        // by OpId; none for erased ops
  std::vector<uint32_t> sharding_ids_;  // by ShardingId; none for unused ones
  std::vector<int64_t> trips_;    // by RegionId
  llvm::DenseMap<uint32_t, uint32_t> literal_ids_;
};

}  // namespace

int64_t byteSize(const Module& module, TypeId id) {
  const Type& type = module.type(id);
  int64_t bytes = 0;
  if (type.kind == TypeKind::kTuple)
    for (TypeId element : type.elements) bytes = sum(bytes, byteSize(module, element));
  if (type.kind != TypeKind::kTensor || llvm::is_contained(type.dims, kDynamicDim)) return bytes;
  if (__builtin_mul_overflow(type.numElements(), static_cast<int64_t>(hostBytes(type.element)), &bytes))
    return INT64_MAX;
  return bytes;
}

double wireBytes(const Module& module, OpId id) {
  const Op& op = module.op(id);
  double bytes = 0;
  for (ValueId v : op.results) bytes += static_cast<double>(byteSize(module, module.value(v).type));
  double n = static_cast<double>(groupSize(module, id));
  switch (op.opcode) {
    case Opcode::all_reduce:
    case Opcode::cross_replica_sum:
      return 2 * bytes * (n - 1) / n;
    case Opcode::all_gather:
    case Opcode::all_to_all:
    case Opcode::collective_broadcast:
      return bytes * (n - 1) / n;
    case Opcode::reduce_scatter:
      return bytes * (n - 1);
    case Opcode::collective_permute: {
      const Attr* pairs = module.findAttr(id, AttrKey::source_target_pairs);
      int64_t leaving = 0;
      for (int64_t row = 0; pairs && pairs->groups.cols == 2 && row < pairs->groups.rows; ++row)
        leaving += pairs->groups.ids[static_cast<size_t>(2 * row)] !=
                   pairs->groups.ids[static_cast<size_t>(2 * row + 1)];
      int64_t devices = module.num_partitions * module.num_replicas;
      for (const Mesh& mesh : module.meshes) devices = std::max(devices, mesh.numDevices());
      return bytes * static_cast<double>(leaving) / static_cast<double>(devices);
    }
    default:
      return 0;
  }
}

llvm::Error writeDocument(const Module& module, llvm::raw_ostream& os, llvm::StringRef only) {
  return Writer(module, os, only).run();
}

}  // namespace tpu::hlo
