#include "build.h"

#include <algorithm>

#include "llvm/ADT/StringExtras.h"

namespace tpu::frontend::hlo_text {

using llvm::StringRef;

namespace {

constexpr size_t kMostNested = 200;  // computations within computations

}  // namespace

size_t mostInstructions(const Text& text) {
  size_t written = 0;
  for (const Computation& computation : text.computations) written += computation.instructions.size();
  return std::max(size_t{1} << 22, 2 * written);
}

hlo::TypeId Build::typeOf(const Shape& shape) {
  return shape.kind == Shape::kToken ? m.tokenType() : m.tensorType(shape.element, shape.dims);
}

void Build::leaves(const Shape& shape, std::vector<const Shape*>& out) {
  if (shape.kind != Shape::kTuple) return out.push_back(&shape);
  for (const Shape& e : shape.elements) leaves(e, out);
}

bool Build::leaves(const Val& val, const char* at, llvm::SmallVectorImpl<ValueId>& out) {
  if (!val.tuple) {
    if (!val.v.valid()) return c.error(Code::kUnsupportedFormat, at, "a value of a manual computation is used outside of its body");
    out.push_back(val.v);
    return true;
  }
  for (const Val& e : val.elements)
    if (!leaves(e, at, out)) return false;
  return true;
}

Build::Val Build::assemble(const Shape& shape, llvm::ArrayRef<ValueId>& arrays) {
  Val out;
  if (shape.kind != Shape::kTuple) {
    out.v = arrays.front();
    arrays = arrays.drop_front();
    return out;
  }
  out.tuple = true;
  for (const Shape& e : shape.elements) out.elements.push_back(assemble(e, arrays));
  return out;
}

std::string stringOfMlir(StringRef value) {
  std::string plain;
  const bool quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
  for (StringRef rest = quoted ? value.drop_front().drop_back() : value; !rest.empty();) {
    const char first = rest.front();
    rest = rest.drop_front();
    if (!quoted || first != '\\' || rest.empty()) {
      plain += first;
      continue;
    }
    unsigned code = 0;
    const StringRef octal = rest.take_while([](char ch) { return ch >= '0' && ch <= '7'; }).take_front(3);
    if (!octal.getAsInteger(8, code)) {
      plain += static_cast<char>(code);
      rest = rest.drop_front(octal.size());
      continue;
    }
    const char next = rest.front();
    plain += next == 'n' ? '\n' : next == 't' ? '\t' : next == 'r' ? '\r' : next;
    rest = rest.drop_front();
  }
  return quotedText(plain);
}

// The user's line where the dump has it, else the line of the text.
hlo::LocId Build::locOf(const Instruction& i) {
  int64_t frame = 0;
  std::string file, line;
  StringRef metadata = i.get("metadata");
  const auto field = [&](StringRef name) -> StringRef {
    const size_t at = metadata.find(name);
    if (at == StringRef::npos) return "";
    StringRef rest = metadata.drop_front(at + name.size());
    if (rest.consume_front("\"")) return rest.take_until([](char ch) { return ch == '"'; });
    return rest.take_while(isDigit);
  };
  if (!field("stack_frame_id=").getAsInteger(10, frame) && frame > 0 && frame < static_cast<int64_t>(text_.frames.size()) &&
      !text_.frames[static_cast<size_t>(frame)].empty())
    return m.internLoc(text_.frames[static_cast<size_t>(frame)]);
  if (!field("source_file=").empty())
    return m.internLoc(baseName(field("source_file=")) + ":" + field("source_line=").str());
  return textLoc(i.at);
}

hlo::LocId Build::textLoc(const char* at) {
  const auto [row, column] = c.lineColumn(at);
  return m.internLoc(base_ + ":" + std::to_string(row) + ":" + std::to_string(column));
}

const Computation* Build::called(const Instruction& i, StringRef attribute) {
  StringRef name = i.get(attribute);
  name.consume_front("%");
  const auto found = text_.by_name.find(name);
  if (found != text_.by_name.end()) return &text_.computations[found->second];
  fail(i, name.empty() ? llvm::Twine("'") + i.opcode + "' without " + attribute + "="
                       : llvm::Twine("no computation '") + name + "'",
       Code::kUnknownName);
  return nullptr;
}

bool Build::agrees(const Shape& shape, const Val& val) {
  if (val.done || val.manual) return true;
  if (!val.tuple) {
    if (shape.kind == Shape::kTuple || !val.v.valid()) return shape.kind != Shape::kTuple;
    const hlo::TypeId stated = typeOf(shape);  // may move all types: before any of them is looked at
    return hlo::compatible(m.type(stated), m.typeOf(val.v));
  }
  if (shape.kind != Shape::kTuple || shape.elements.size() != val.elements.size()) return false;
  for (size_t k = 0; k < val.elements.size(); ++k)
    if (!agrees(shape.elements[k], val.elements[k])) return false;
  return true;
}

bool Build::operands(Frame& frame, const Instruction& i, Vals* out) {
  for (StringRef name : i.operands) {
    const auto found = frame.computation->index.find(name);
    if (found == frame.computation->index.end() || found->second >= frame.values.size())
      return fail(i, "no value '" + name + "' before this line", Code::kUnknownName);
    out->push_back(frame.values[found->second]);
  }
  return true;
}

bool Build::arrays(Frame& frame, const Instruction& i, llvm::SmallVectorImpl<ValueId>* out) {
  Vals in;
  if (!operands(frame, i, &in)) return false;
  for (const Val& v : in) {
    if (v.tuple || !v.v.valid()) return fail(i, "'" + i.opcode + "' takes arrays, not tuples");
    out->push_back(v.v);
  }
  return true;
}

bool Build::instruction(Frame& frame, const Instruction& i) {
  Val out;
  if (++built_ > most_) return fail(i, "the calls of this program unfold to too many instructions", Code::kTooDeep);
  b.loc = locOf(i);
  if (i.opcode == "parameter") {
    int64_t number;
    if (i.inside.getAsInteger(10, number) || number < 0 || number >= static_cast<int64_t>(frame.parameters->size()))
      return fail(i, "no parameter " + i.inside + " is given to this computation");
    out = (*frame.parameters)[static_cast<size_t>(number)];
  } else if (!build(frame, i, &out)) {
    return false;
  }
  if (!agrees(i.shape, out)) return fail(i, "'" + i.opcode + "' does not give the tuple or array that is stated");
  frame.values.push_back(std::move(out));
  return !c.failed();
}

bool Build::computation(const Computation& computation, const Vals& parameters, Val* out) {
  if (!open_.insert(&computation).second)
    return c.error(Code::kBadCall, computation.at, "computation '" + computation.name + "' calls itself");
  if (open_.size() > kMostNested)
    return c.error(Code::kTooDeep, computation.at, "computations nest too deeply in each other, down to '" + computation.name + "'");
  Frame frame{&computation, {}, &parameters};
  frame.values.reserve(computation.instructions.size());
  const hlo::LocId outside = b.loc;
  for (const Instruction& i : computation.instructions)
    if (!instruction(frame, i)) return false;
  b.loc = outside;
  open_.erase(&computation);
  *out = frame.values[computation.root];
  return true;
}

bool Build::region(OpId op, const Computation& body, llvm::ArrayRef<hlo::TypeId> types,
                   const std::function<Vals(llvm::ArrayRef<ValueId>)>& parameters) {
  const hlo::RegionId outside = b.region();
  const hlo::RegionId region = b.addRegion(op);
  llvm::SmallVector<ValueId, 8> args;
  for (hlo::TypeId t : types) args.push_back(m.addArg(region, t, b.loc));
  b.atEnd(region);
  Val root;
  if (!computation(body, parameters(args), &root)) return false;
  llvm::SmallVector<ValueId, 8> results;
  if (!leaves(root, body.instructions[body.root].at, results)) return false;
  b.yield(results);
  b.atEnd(outside);
  return true;
}

bool Build::header() {
  m.name = text_.name.str();
  m.source_file = base_;
  for (const auto& [name, count] : {std::pair<StringRef, int64_t*>{"num_partitions", &m.num_partitions},
                                    {"replica_count", &m.num_replicas}}) {
    const StringRef value = text_.get(name);
    if (!value.empty() && (value.getAsInteger(10, *count) || *count < 1 || *count > int64_t{1} << 31))
      return c.error(Code::kSyntaxError, c.begin, "bad " + name);
  }
  for (const Attribute& a : text_.attributes) m.attrs.push_back({"hlo." + a.name.str(), stringOfMlir(a.value)});
  return true;
}

bool Build::entry() {
  const auto found = llvm::find_if(text_.computations, [](const Computation& x) { return x.entry; });
  const Computation& entry = found == text_.computations.end() ? text_.computations.back() : *found;
  const hlo::FuncId func = m.addFunc("main", false);
  m.entry = func;
  m.funcs[func.v].loc = textLoc(entry.at);
  b.atEnd(m.func(func).body);
  std::map<int64_t, const Instruction*> parameters;
  for (const Instruction& i : entry.instructions) {
    int64_t number;
    if (i.opcode != "parameter") continue;
    if (i.inside.getAsInteger(10, number) || !parameters.try_emplace(number, &i).second)
      return fail(i, "parameter " + i.inside + " is no number, or is given twice");
  }
  Vals args;
  for (const auto& [number, i] : parameters) {
    if (number != static_cast<int64_t>(args.size())) return fail(*i, "parameters are not numbered from 0 without gaps");
    b.loc = locOf(*i);
    std::vector<const Shape*> shapes;
    leaves(i->shape, shapes);
    const auto shardings = splitTupleSharding(i->get("sharding"), shapes.size());
    llvm::SmallVector<ValueId, 8> values;
    for (size_t k = 0; k < shapes.size(); ++k) {
      hlo::Port port;
      port.name = m.internString(parameterName(*i) + (shapes.size() > 1 ? "." + std::to_string(k) : ""));
      if (!shardings[k].empty()) port.attrs = "mhlo.sharding = \"" + shardings[k].str() + "\"";
      if (const std::string text = frontendAttribute(*i, "xla.sdy.sharding"); !text.empty() && shapes.size() == 1) {
        Ints ids;
        if (!shardingText(*i, text, &ids)) return false;
        port.sharding = hlo::ShardingId(static_cast<uint32_t>(ids[0]));
        port.attrs.clear();
      }
      values.push_back(m.addArg(m.func(func).body, typeOf(*shapes[k]), b.loc));
      m.value(values.back()).sharding = port.sharding;
      m.funcs[func.v].arg_ports.push_back(std::move(port));
    }
    llvm::ArrayRef<ValueId> rest(values);
    args.push_back(assemble(i->shape, rest));
  }
  Val root;
  if (!computation(entry, args, &root)) return false;
  const Instruction& last = entry.instructions[entry.root];
  llvm::SmallVector<ValueId, 8> results;
  if (!leaves(root, last.at, results)) return false;
  const auto shardings = splitTupleSharding(last.get("sharding"), results.size());
  for (size_t k = 0; k < results.size(); ++k) {
    hlo::Port port;
    if (!shardings[k].empty()) port.attrs = "mhlo.sharding = \"" + shardings[k].str() + "\"";
    if (const auto asked = result_shardings_.find(results[k].v); asked != result_shardings_.end()) {
      port.sharding = asked->second;
      port.attrs.clear();
      results[k] = m.op(m.value(results[k]).def).operands[0];  // what carried the request has done its work
    }
    m.funcs[func.v].result_types.push_back(m.value(results[k]).type);
    m.funcs[func.v].result_ports.push_back(std::move(port));
  }
  b.loc = locOf(last);
  b.yield(results);
  return aliases(entry);
}

}  // namespace tpu::frontend::hlo_text
