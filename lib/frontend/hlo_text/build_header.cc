// What a module says about its border: names, shardings and aliases of parameters and results.
#include <map>

#include "../parser.h"
#include "build.h"
#include "tpu/sharding/gspmd.h"

namespace tpu::frontend::hlo_text {

using llvm::StringRef;

// One sharding for every leaf: a tuple's {{..}, {..}} one by one, any other for all.
llvm::SmallVector<StringRef, 4> Build::splitTupleSharding(StringRef text, size_t leaves) {
  auto parts = sharding::splitTuple(text);
  parts.resize(leaves, text.starts_with("{{") ? StringRef() : text);
  return parts;
}

std::string Build::parameterName(const Instruction& i) {
  const StringRef metadata = i.get("metadata");
  const size_t at = metadata.find("op_name=\"");
  if (at == StringRef::npos) return i.name.str();
  StringRef rest = metadata.drop_front(at + 8);
  size_t end = 1;
  while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
  const std::string name = unquoted(rest.take_front(end + 1));
  return name.empty() ? i.name.str() : name;
}

std::string Build::frontendAttribute(const Instruction& i, StringRef name) {
  for (StringRef entry : splitList(i.get("frontend_attributes"))) {
    const auto [key, value] = entry.split('=');
    if (key.trim() == name) return unquoted(value.trim());
  }
  return "";
}

// "#sdy.sharding<@mesh, [...]>" or "#sdy.sharding_per_value<[<@mesh, ..>, ..]>".
bool Build::shardingText(const Instruction& i, StringRef text, Ints* ids) {
  Parser parser(text, base_, m, sink_);
  if (llvm::Error e = parser.readShardings(*ids)) {
    llvm::consumeError(std::move(e));
    return fail(i, "bad sharding '" + text + "'");
  }
  return true;
}

// "#sdy<manual_axes{"x"}>": axes of the mesh that the shardings name.
bool Build::manualAxes(const Instruction& i, OpId op, StringRef text) {
  hlo::MeshId mesh;
  for (AttrKey key : {AttrKey::in_shardings, AttrKey::out_shardings})
    for (int64_t id : m.getInts(op, key))
      if (!mesh.valid()) mesh = m.sharding(hlo::ShardingId(static_cast<uint32_t>(id))).mesh;
  llvm::SmallVector<hlo::AxisRef, 4> axes;
  const size_t open = text.find('{'), close = text.rfind('}');
  if (!mesh.valid() || open == StringRef::npos || close == StringRef::npos) return fail(i, "bad manual axes '" + text + "'");
  for (StringRef name : splitList(text.slice(open, close + 1))) {
    const int axis = m.meshes[mesh.v].findAxis(unquoted(name));
    if (axis < 0) return fail(i, "no mesh axis " + name);
    axes.push_back({static_cast<uint32_t>(axis), 1, m.meshes[mesh.v].axes[static_cast<size_t>(axis)].size});
  }
  m.setAxes(op, AttrKey::manual_axes, mesh, axes);
  return true;
}

// frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=4]>, ...}}
bool Build::meshes() {
  for (StringRef entry : splitList(text_.get("frontend_attributes"))) {
    auto [key, value] = entry.split('=');
    if (key.trim() != "xla.sdy.meshes") continue;
    const std::string text = unquoted(value.trim());
    for (StringRef mesh : splitList(text)) {
      auto [name, body] = mesh.split('=');
      body = body.trim();
      body.consume_front("#sdy.mesh");
      const std::string one = body.str();
      Parser parser(one, base_, m, sink_);
      if (llvm::Error e = parser.readMesh(unquoted(name.trim()))) {
        llvm::consumeError(std::move(e));
        return c.error(Code::kSyntaxError, c.begin, "bad mesh '" + mesh + "'");
      }
    }
  }
  return true;
}

namespace {

// The number of the first leaf of an element of a tuple.
bool leafOf(const Shape& shape, llvm::ArrayRef<int64_t> path, int64_t* leaf) {
  if (path.empty()) return true;
  if (shape.kind != Shape::kTuple || path[0] < 0 || path[0] >= static_cast<int64_t>(shape.elements.size())) return false;
  const std::function<int64_t(const Shape&)> count = [&](const Shape& s) {
    int64_t n = s.kind != Shape::kTuple;
    for (const Shape& e : s.elements) n += count(e);
    return n;
  };
  for (int64_t k = 0; k < path[0]; ++k) *leaf += count(shape.elements[static_cast<size_t>(k)]);
  return leafOf(shape.elements[static_cast<size_t>(path[0])], path.drop_front(), leaf);
}

}  // namespace

// input_output_alias={ {0}: (2, {}, may-alias), ... } and buffer_donor={ (0, {}), ... }.
bool Build::aliases(const Computation& entry) {
  std::map<int64_t, std::pair<int64_t, const Shape*>> first;  // of a parameter: its first argument
  int64_t args = 0;
  std::map<int64_t, const Shape*> shapes;
  for (const Instruction& i : entry.instructions) {
    int64_t number;
    if (i.opcode == "parameter" && !i.inside.getAsInteger(10, number)) shapes[number] = &i.shape;
  }
  for (const auto& [number, shape] : shapes) {
    first[number] = {args, shape};
    std::vector<const Shape*> parts;
    leaves(*shape, parts);
    args += static_cast<int64_t>(parts.size());
  }
  auto& ports = m.funcs[m.entry.v].arg_ports;
  const auto bad = [&](StringRef text) { return c.error(Code::kSyntaxError, c.begin, "bad alias '" + text + "'"); };
  const auto argument = [&](StringRef place, int64_t* arg) {  // "(2, {0}, may-alias)"
    place = place.trim();
    if (!place.consume_front("(") || !place.consume_back(")")) return false;
    const auto parts = splitList(place);
    int64_t number;
    Ints path;
    if (parts.size() < 2 || parts[0].getAsInteger(10, number) || !first.count(number) || !readInts(parts[1], path)) return false;
    *arg = first[number].first;
    return leafOf(*first[number].second, path, arg);
  };
  for (StringRef entry_text : splitList(text_.get("input_output_alias"))) {
    const auto [output, place] = entry_text.split(':');
    Ints path;
    int64_t arg, leaf = 0;
    if (!readInts(output, path) || !argument(place, &arg) || !leafOf(entry.instructions[entry.root].shape, path, &leaf))
      return bad(entry_text);
    ports[static_cast<size_t>(arg)].alias = static_cast<int>(leaf);
  }
  for (StringRef place : splitList(text_.get("buffer_donor"))) {
    int64_t arg;
    if (!argument(place, &arg)) return bad(place);
    ports[static_cast<size_t>(arg)].donated = true;
  }
  return true;
}

// A dump taken after SPMD partitioning has per-device shapes and collectives; before it, requests for shardings.
bool Build::isPartitioned() {
  if (devicesNamed() < 2) return false;
  bool collectives = text_.get("is_scheduled") == "true";
  for (const Computation& computation : text_.computations)
    for (const Instruction& i : computation.instructions) {
      const StringRef target = i.get("custom_call_target");
      if (target == "\"Sharding\"" || target == "\"SPMDFullToShardShape\"" || target.starts_with("\"xla.sdy.")) return false;
      if (i.opcode.starts_with("all-") || i.opcode.starts_with("collective-") || i.opcode.starts_with("reduce-scatter") ||
          i.opcode == "partition-id")
        collectives = true;
    }
  return collectives;
}

bool Build::run() {
  if (!header() || !meshes()) return false;
  if (!isPartitioned()) return entry();
  m.stage = hlo::Stage::kSpmd;
  if (m.num_partitions * m.num_replicas == 1) m.num_partitions = devicesNamed();
  return entry() && wholePorts();
}

}  // namespace tpu::frontend::hlo_text
