// Reading a document: the tables.
#include "read.h"

#include "tpu/hlo/document.h"

namespace tpu::hlo {
namespace {

constexpr int64_t kMaxDevices = int64_t{1} << 32;
constexpr int kMaxRegionDepth = 256;

// Applies `read` to each row until one fails.
template <class Read>
llvm::Error each(JsonValue::Range rows, const Read& read) {
  for (JsonValue row : rows)
    if (llvm::Error e = read(row)) return e;
  return llvm::Error::success();
}

}  // namespace

llvm::Expected<Module> DocumentReader::run() {
  llvm::Expected<DocumentHeader> head = readDocumentHeader(doc_, {"hlo", "spmd"});
  if (!head) return head.takeError();
  m.stage = head->stage == "hlo" ? Stage::kHlo : Stage::kSpmd;
  FieldReader r(doc_.root(), "document");
  ignoreHeader(&r);
  if (auto e = header(r)) return e;
  if (auto e = pairs(r.optionalArray("attributes"), "attributes row", m.attrs)) return e;
  if (auto e = pairs(r.optionalArray("options"), "options row", m.options)) return e;
  if (auto e = each(r.optionalArray("meshes"), [&](JsonValue row) { return mesh(row); })) return e;
  if (auto e = each(r.optionalArray("shardings"), [&](JsonValue row) { return sharding(row); })) return e;
  if (auto e = each(r.optionalArray("literals"), [&](JsonValue row) { return literal(row); })) return e;
  if (auto e = each(r.requiredArray("funcs"), [&](JsonValue row) { return func(row); })) return e;
  if (auto e = each(r.optionalArray("ports"), [&](JsonValue row) { return port(row); })) return e;
  for (size_t i = 0; i < counts_.size(); ++i) {
    const Func& f = m.funcs[i];
    if (static_cast<int64_t>(f.arg_ports.size()) != counts_[i].args ||
        static_cast<int64_t>(f.result_ports.size()) != counts_[i].results)
      return bad(counts_[i].row, "function '" + m.string(f.name) + "' states " +
                                     llvm::Twine(counts_[i].args) + " arguments and " +
                                     llvm::Twine(counts_[i].results) + " results, the table of ports has " +
                                     llvm::Twine(f.arg_ports.size()) + " and " +
                                     llvm::Twine(f.result_ports.size()));
  }
  if (auto e = each(r.optionalArray("regions"), [&](JsonValue row) { return region(row); })) return e;
  if (auto e = each(r.requiredArray("ops"), [&](JsonValue row) { return op(row); })) return e;
  if (!regions_.empty()) return bad(doc_.root(), "the table of regions has rows of ops that do not exist");
  if (auto e = each(r.optionalArray("whys"), [&](JsonValue row) { return why(row); })) return e;
  llvm::StringRef entry = r.optionalString("entry");
  if (!entry.empty()) {
    m.entry = m.findFunc(entry);
    if (!m.entry) r.bad("entry", "no function is called '" + entry + "'");
  }
  if (auto e = r.finish()) return e;
  return std::move(m);
}

llvm::Error DocumentReader::header(FieldReader& r) {
  m.name = r.optionalString("name").str();
  m.source_file = r.optionalString("source").str();
  m.target = r.optionalString("target").str();
  m.chip_json = r.optionalString("chip").str();
  m.num_partitions = r.optionalInt("partitions", 1, 1, kMaxDevices);
  m.num_replicas = r.optionalInt("replicas", 1, 1, kMaxDevices);
  llvm::SmallVector<int64_t, 16> order;
  r.optionalInts("device_order", &order);
  m.device_order.assign(order.begin(), order.end());
  if (r.ok() && m.num_partitions > kMaxDevices / m.num_replicas) r.bad("partitions", "too many devices");
  return llvm::Error::success();
}

llvm::Error DocumentReader::pairs(JsonValue::Range rows, llvm::StringRef what,
                                  std::vector<std::pair<std::string, std::string>>& out) {
  return each(rows, [&](JsonValue row) {
    FieldReader r(row, what);
    llvm::StringRef name = r.requiredString("name"), value = r.requiredString("value");
    out.push_back({name.str(), value.str()});
    return r.finish();
  });
}

llvm::Error DocumentReader::mesh(JsonValue row) {
  FieldReader r(row, "meshes row");
  int64_t id = r.requiredInt("id", 0, kMaxRowId);
  Mesh mesh;
  mesh.name = r.optionalString("name").str();
  for (JsonValue axis : r.requiredArray("axes")) {
    if (!axis.isString()) return bad(axis, "expected the name of an axis");
    if (mesh.findAxis(*axis.asString()) >= 0)
      return bad(axis, "axis '" + *axis.asString() + "' is named twice");
    mesh.axes.push_back({axis.asString()->str(), 1});
  }
  llvm::SmallVector<int64_t, 4> sizes;
  llvm::SmallVector<int64_t, 16> devices;
  r.requiredInts("sizes", &sizes);
  r.optionalInts("device_ids", &devices);
  mesh.maximal_device = r.optionalInt("device", -1, 0, kMaxDevices);
  if (r.ok() && sizes.size() != mesh.axes.size()) r.bad("sizes", "a mesh has as many sizes as axes");
  if (auto e = r.finish()) return e;
  int64_t count = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1 || sizes[i] > kMaxDevices / count) return bad(row, "mesh of a size that no machine has");
    count *= sizes[i];
    mesh.axes[i].size = sizes[i];
  }
  if (!devices.empty() && static_cast<int64_t>(devices.size()) != count)
    return bad(row, "device_ids do not match the mesh");
  mesh.device_ids.assign(devices.begin(), devices.end());
  if (!meshes_.add(id, MeshId(static_cast<uint32_t>(m.meshes.size()))))
    return bad(row, "mesh id stands twice");
  m.meshes.push_back(std::move(mesh));
  return llvm::Error::success();
}

llvm::Error DocumentReader::sharding(JsonValue row) {
  FieldReader r(row, "shardings row");
  int64_t id = r.requiredInt("id", 0, kMaxRowId);
  Sharding s;
  if (auto mesh = r.required("mesh"))
    if (auto e = meshId(*mesh, s.mesh)) return e;
  if (!s.mesh) return r.finish();
  const Mesh& mesh = m.meshes[s.mesh.v];
  for (JsonValue dim : r.requiredArray("dims")) {
    DimSharding d;
    if (auto e = axes(dim, mesh, d.axes)) return e;
    s.dims.push_back(std::move(d));
  }
  size_t i = 0;
  for (JsonValue open : r.optionalArray("open")) {
    if (i >= s.dims.size() || !open.asBool()) return bad(open, "expected one truth value per dimension");
    s.dims[i++].open = *open.asBool();
  }
  i = 0;
  for (JsonValue priority : r.optionalArray("priorities")) {
    if (i >= s.dims.size() || !priority.asInt() || *priority.asInt() < -1 || *priority.asInt() > 1'000'000)
      return bad(priority, "expected one priority per dimension");
    s.dims[i++].priority = static_cast<int>(*priority.asInt());
  }
  if (auto list = r.optional("replicated"))
    if (auto e = axes(*list, mesh, s.replicated)) return e;
  if (auto list = r.optional("unreduced"))
    if (auto e = axes(*list, mesh, s.unreduced)) return e;
  if (auto e = r.finish()) return e;
  if (!shardings_.add(id, m.internSharding(s))) return bad(row, "sharding id stands twice");
  return llvm::Error::success();
}

llvm::Error DocumentReader::literal(JsonValue row) {
  FieldReader r(row, "literals row");
  int64_t id = r.requiredInt("id", 0, kMaxRowId);
  Literal l;
  if (auto e = type(r, row, l.type)) return e;
  if (!r.ok()) return r.finish();
  if (auto e = literalData(r, row, m.type(l.type), l)) return e;
  if (auto e = r.finish()) return e;
  if (!literals_.add(id, m.addLiteral(std::move(l)))) return bad(row, "literal id stands twice");
  return llvm::Error::success();
}

llvm::Error DocumentReader::func(JsonValue row) {
  FieldReader r(row, "funcs row");
  llvm::StringRef name = r.requiredString("fn");
  bool is_private = r.optionalBool("private", false);
  Counts counts;
  counts.args = r.requiredInt("args", 0, kMaxRowId);
  counts.results = r.requiredInt("results", 0, kMaxRowId);
  counts.row = row;
  llvm::StringRef loc = r.optionalString("loc");
  if (auto e = r.finish()) return e;
  if (m.findFunc(name)) return bad(row, "function '" + name + "' stands twice");
  FuncId id = m.addFunc(name, is_private);
  if (!loc.empty()) m.funcs[id.v].loc = m.internLoc(loc);
  counts_.push_back(counts);
  return llvm::Error::success();
}

llvm::Error DocumentReader::port(JsonValue row) {
  FieldReader r(row, "ports row");
  FuncId func;
  if (auto e = funcRef(r, row, func)) return e;
  llvm::StringRef side = r.requiredString("port");
  int64_t index = r.requiredInt("index", 0, kMaxRowId);
  Port p;
  if (auto name = r.optional("name")) {
    if (!name->isString()) return bad(*name, "expected a name");
    p.name = m.internString(*name->asString());
  }
  TypeId t;
  if (auto e = type(r, row, t)) return e;
  if (!r.ok()) return r.finish();
  if (auto global = r.optional("global")) {
    Dims whole;
    if (auto e = dims(*global, whole)) return e;
    p.global_type = m.tensorType(m.type(t).element, whole);
  }
  if (auto e = shardingId(r, "sharding", p.sharding)) return e;
  r.ignore("bytes");
  p.alias = static_cast<int>(r.optionalInt("alias", -1, 0, INT32_MAX));
  p.donated = r.optionalBool("donated", false);
  p.attrs = r.optionalString("attributes").str();
  bool is_arg = side == "arg";
  if (r.ok() && !is_arg && side != "result") r.bad("port", "expected 'arg' or 'result'");
  ShardingId own = p.sharding;
  llvm::StringRef loc;
  if (is_arg) {
    int64_t stated = r.optionalInt("value_sharding", -2, -1, kMaxRowId);
    if (stated == -1) own = ShardingId();
    if (stated >= 0) {
      own = shardings_.find(stated);
      if (!own) return bad(row, "unknown sharding " + llvm::Twine(stated));
    }
    loc = r.optionalString("loc");
  }
  if (auto e = r.finish()) return e;
  Func& f = m.funcs[func.v];
  std::vector<Port>& ports = is_arg ? f.arg_ports : f.result_ports;
  if (index != static_cast<int64_t>(ports.size()))
    return bad(row, "the ports of a function are not in order");
  if (is_arg) {
    ValueId arg = m.addArg(f.body, t, loc.empty() ? LocId() : m.internLoc(loc));
    m.value(arg).sharding = own;
    m.value(arg).name = p.name;
  } else {
    f.result_types.push_back(t);
  }
  ports.push_back(std::move(p));
  return llvm::Error::success();
}

llvm::Error DocumentReader::region(JsonValue row) {
  FieldReader r(row, "regions row");
  int64_t op = r.requiredInt("op", 0, kMaxRowId);
  int64_t index = r.requiredInt("region", 0, kMaxRowId);
  auto args = r.required("args");
  if (auto e = r.finish()) return e;
  if (!args->isArray()) return bad(*args, "expected a list of arguments");
  if (!regions_.try_emplace({op, index}, *args).second) return bad(row, "region stands twice");
  return llvm::Error::success();
}

llvm::Error DocumentReader::op(JsonValue row) {
  FieldReader r(row, "ops row");
  int64_t id = r.requiredInt("id", 0, kMaxRowId);
  FuncId func;
  if (auto e = funcRef(r, row, func)) return e;
  RegionId region = m.func(func).body;
  if (auto parent = r.optional("parent")) {
    OpId outer;
    if (auto e = opRef(*parent, outer)) return e;
    int64_t index = r.requiredInt("region", 0, kMaxRowId);
    if (r.ok() && index >= static_cast<int64_t>(m.op(outer).regions.size()))
      r.bad("region", "the parent has no such region");
    if (!r.ok()) return r.finish();
    region = m.op(outer).regions[static_cast<size_t>(index)];
    if (m.region(region).func != func) return bad(row, "the parent lies in another function");
  }
  llvm::StringRef name = r.requiredString("op");
  auto opcode = findOpcode(name);
  if (r.ok() && !opcode) return fail(Code::kBadField, row.loc(), "unknown operation '" + name + "'");
  if (!r.ok()) return r.finish();

  OpId self = m.append(region, *opcode, {}, {}, LocId());
  llvm::SmallVector<ValueId, 4> operands;
  for (JsonValue in : r.optionalArray("in")) {
    ValueId value;
    if (auto e = valueRef(in, func, value)) return e;
    operands.push_back(value);
  }
  m.op(self).operands.assign(operands.begin(), operands.end());
  for (JsonValue out : r.optionalArray("out")) {
    FieldReader fields(out, "result");
    TypeId t;
    ShardingId s;
    if (auto e = type(fields, out, t)) return e;
    if (auto e = shardingId(fields, "sharding", s)) return e;
    auto given_name = fields.optional("name");
    if (auto e = fields.finish()) return e;
    ValueId value = m.addResult(self, t);
    m.value(value).sharding = s;
    if (given_name && given_name->isString()) m.value(value).name = m.internString(*given_name->asString());
  }
  if (auto list = r.optional("attrs"))
    if (auto e = attrs(*list, self)) return e;
  for (llvm::StringRef derived : {"bytes", "group", "wire_bytes", "trips"}) r.ignore(derived);
  llvm::StringRef loc = r.optionalString("loc");
  if (auto e = r.finish()) return e;
  if (!loc.empty()) {
    m.op(self).loc = m.internLoc(loc);
    for (ValueId value : m.op(self).results) m.value(value).loc = m.op(self).loc;
  }
  if (!ops_.add(id, self)) return bad(row, "op id stands twice");

  int depth = depths_.lookup(region.v) + 1;
  if (depth > kMaxRegionDepth) return bad(row, "regions nest too deeply");
  for (int64_t index = 0;; ++index) {
    auto it = regions_.find({id, index});
    if (it == regions_.end()) break;
    JsonValue args = it->second;
    regions_.erase(it);
    RegionId nested = m.addRegion(self, func);
    depths_[nested.v] = depth;
    for (JsonValue arg : args.elements()) {
      FieldReader fields(arg, "region argument");
      TypeId t;
      ShardingId s;
      if (auto e = type(fields, arg, t)) return e;
      if (auto e = shardingId(fields, "sharding", s)) return e;
      auto given_name = fields.optional("name");
      llvm::StringRef arg_loc = fields.optionalString("loc");
      if (auto e = fields.finish()) return e;
      ValueId value = m.addArg(nested, t, arg_loc.empty() ? LocId() : m.internLoc(arg_loc));
      m.value(value).sharding = s;
      if (given_name && given_name->isString()) m.value(value).name = m.internString(*given_name->asString());
    }
  }
  return llvm::Error::success();
}

llvm::Error DocumentReader::why(JsonValue row) {
  FieldReader r(row, "whys row");
  Why why;
  if (auto op = r.required("op"))
    if (auto e = opRef(*op, why.op)) return e;
  why.code = r.requiredString("code").str();
  if (auto op = r.optional("for"))
    if (auto e = opRef(*op, why.needed_by)) return e;
  why.asked_at = r.optionalString("asked_at").str();
  why.before = r.optionalString("before").str();
  why.after = r.optionalString("after").str();
  why.reason = r.optionalString("reason").str();
  why.remove_by = r.optionalString("remove_by").str();
  if (auto e = r.finish()) return e;
  m.whys.push_back(std::move(why));
  return llvm::Error::success();
}

llvm::Expected<Module> readDocument(const JsonDoc& document) { return DocumentReader(document).run(); }

llvm::Expected<Module> readDocument(llvm::StringRef text, llvm::StringRef filename) {
  llvm::Expected<JsonDoc> document = JsonDoc::parse(filename, text.str());
  if (!document) return document.takeError();
  return readDocument(*document);
}

}  // namespace tpu::hlo
