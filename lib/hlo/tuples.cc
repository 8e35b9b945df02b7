// Tuples name several arrays at once; no machine knows them. Those at the entry's border become arguments and results of
// their own, in order, and elements taken out of a tuple that the program built are the values that went in.
#include "tpu/hlo/analysis.h"
#include "tpu/hlo/builder.h"

namespace tpu::hlo {
namespace {

bool isTuple(const Module& m, TypeId id) { return m.type(id).kind == TypeKind::kTuple; }

void leaves(const Module& m, TypeId id, std::vector<TypeId>& out) {
  if (!isTuple(m, id)) return out.push_back(id);
  for (TypeId e : m.type(id).elements) leaves(m, e, out);
}

// The tuple value whose leaves are args, taken from the front.
ValueId rebuild(Builder& b, TypeId id, llvm::ArrayRef<ValueId>& args) {
  if (!isTuple(b.m, id)) {
    const ValueId v = args.front();
    args = args.drop_front();
    return v;
  }
  llvm::SmallVector<ValueId, 4> parts;
  const llvm::SmallVector<TypeId, 2> elements = b.m.type(id).elements;
  for (TypeId e : elements) parts.push_back(rebuild(b, e, args));
  return b.result(b.create(Opcode::tuple, parts, {id}));
}

void takeApart(Builder& b, ValueId v, llvm::SmallVectorImpl<ValueId>& out) {
  if (!isTuple(b.m, b.typeId(v))) return out.push_back(v);
  const llvm::SmallVector<TypeId, 2> elements = b.type(v).elements;
  for (size_t i = 0; i < elements.size(); ++i) {
    const OpId op = b.create(Opcode::get_tuple_element, {v}, {elements[i]});
    b.m.setInt(op, AttrKey::index, static_cast<int64_t>(i));
    takeApart(b, b.result(op), out);
  }
}

// Ports of the leaves of one port: the whole name with the leaf's number behind it.
void addPorts(Module& m, const Port& port, size_t n, std::vector<Port>& out) {
  if (n == 1) return out.push_back(port);
  for (size_t i = 0; i < n; ++i) {
    Port leaf;
    if (port.name.valid()) leaf.name = m.internString((m.string(port.name) + "." + llvm::Twine(i)).str());
    leaf.donated = port.donated;
    out.push_back(std::move(leaf));
  }
}

void flattenArguments(Module& m, std::vector<ValueId>& map) {
  Func& f = m.funcs[m.entry.v];
  const std::vector<ValueId> old = m.region(f.body).args;
  std::vector<Port> ports;
  Builder b(m, f.body);
  b.at(f.body, 0);
  m.region(f.body).args.clear();
  for (size_t i = 0; i < old.size(); ++i) {
    const TypeId type = m.value(old[i]).type;
    b.loc = m.value(old[i]).loc;
    const Port port = i < f.arg_ports.size() ? f.arg_ports[i] : Port();
    if (!isTuple(m, type)) {
      m.value(old[i]).index = static_cast<uint32_t>(m.region(f.body).args.size());
      m.region(f.body).args.push_back(old[i]);
      ports.push_back(port);
      continue;
    }
    std::vector<TypeId> types;
    leaves(m, type, types);
    std::vector<ValueId> fresh;
    for (TypeId t : types) fresh.push_back(m.addArg(f.body, t, b.loc));
    addPorts(m, port, types.size(), ports);
    llvm::ArrayRef<ValueId> rest(fresh);
    const ValueId whole = rebuild(b, type, rest);
    map.resize(m.numValues());
    map[old[i].v] = whole;
  }
  f.arg_ports = std::move(ports);
}

void flattenResults(Module& m) {
  Func& f = m.funcs[m.entry.v];
  const OpId ret = m.region(f.body).ops.back();
  Builder b(m, f.body, m.op(ret).loc);
  b.at(f.body, m.region(f.body).ops.size() - 1);
  llvm::SmallVector<ValueId, 4> values;
  std::vector<Port> ports;
  std::vector<TypeId> types;
  std::vector<size_t> first;  // leaf that stands where the old result stood
  const llvm::SmallVector<ValueId, 3> old = m.op(ret).operands;
  for (size_t i = 0; i < old.size(); ++i) {
    first.push_back(values.size());
    const size_t before = values.size();
    takeApart(b, old[i], values);
    addPorts(m, i < f.result_ports.size() ? f.result_ports[i] : Port(), values.size() - before, ports);
  }
  for (ValueId v : values) types.push_back(m.value(v).type);
  for (Port& p : f.arg_ports)
    if (p.alias >= 0 && p.alias < static_cast<int>(first.size())) p.alias = static_cast<int>(first[p.alias]);
  m.op(ret).operands.assign(values.begin(), values.end());
  f.result_types = std::move(types);
  f.result_ports = std::move(ports);
}

}  // namespace

bool flattenTuples(Module& m) {
  std::vector<ValueId> map(m.numValues());
  bool any = false, at_border = false;
  walk(m, m.func(m.entry).body, [&](OpId id) { any |= m.op(id).opcode == Opcode::get_tuple_element; });
  for (ValueId v : m.region(m.func(m.entry).body).args) at_border |= isTuple(m, m.value(v).type);
  for (TypeId t : m.func(m.entry).result_types) at_border |= isTuple(m, t);
  if (!any && !at_border) return false;
  if (at_border) {
    flattenArguments(m, map);
    map.resize(m.numValues());
    m.replaceUses(map);
    flattenResults(m);
  }
  map.assign(m.numValues(), ValueId());
  const auto now = [&](ValueId v) {
    while (map[v.v].valid()) v = map[v.v];
    return v;
  };
  walk(m, m.func(m.entry).body, [&](OpId id) {
    if (m.op(id).opcode != Opcode::get_tuple_element) return;
    const OpId def = m.value(now(m.op(id).operands[0])).def;
    if (!def.valid() || m.op(def).opcode != Opcode::tuple) return;
    map[m.op(id).results[0].v] = now(m.op(def).operands[m.getInt(id, AttrKey::index)]);
  });
  m.replaceUses(map);
  eliminateDeadCode(m);
  return true;
}

}  // namespace tpu::hlo
