// Regions and the ops whose pretty form holds them: reduce, while, manual_computation, named_computation.
#include "parser.h"

namespace tpu::frontend {

bool Parser::blockArgs(RegionId region) {
  if (c.accept(')')) return true;
  do {
    c.blanks();
    const char* at = c.p;
    llvm::StringRef name;
    if (!valueName(name) || !c.expect(':')) return false;
    TypeId t = type();
    if (c.failed()) return false;
    Location loc;
    if (!optionalLoc(loc)) return false;
    ValueId arg = m.addArg(region, t, placeOf(loc, at));
    if (!m.region(region).parent_op) {  // a function of the generic form
      const size_t index = m.region(region).args.size() - 1;
      if (auto& ports = m.funcs[func_.v].arg_ports; index < ports.size()) describeArg(arg, ports[index], loc);
    }
    bind(name, arg, 1, at);
  } while (c.accept(','));
  return c.expect(')');
}

bool Parser::regionBody(RegionId region) {
  RegionId outer = region_;
  region_ = region;
  while (!c.accept('}')) {
    if (c.peek() == '^') return c.error("regions of several blocks are not part of StableHLO");
    if (!parseOp()) return false;
  }
  region_ = outer;
  return true;
}

bool Parser::region(OpId op) {
  if (depth_ > static_cast<uint32_t>(kMaxDepth))
    return c.error(Code::kTooDeep, c.p, "regions nest too deeply");
  if (!c.expect('{')) return false;
  RegionId region = m.addRegion(op, func_);
  size_t mark = openScope();
  if (c.accept('^')) {
    c.word();
    if (c.accept('(') && !blockArgs(region)) return false;
    if (!c.expect(':')) return false;
  }
  if (!regionBody(region)) return false;
  closeScope(mark);
  return true;
}

// reduce(%a init: %b), (%c init: %d) applies stablehlo.add across dimensions = [0] : (...) -> t
// reduce(%a init: %b) across dimensions = [0] : (...) -> t reducer(%x: t, %y: t) (%z: u, %w: u) { ... }
bool Parser::prettyReduce(OpId op) {
  llvm::SmallVector<ValueId, 4> operands, inits;
  do {
    ValueId value, init;
    if (!c.expect('(') || !operand(value) || !c.expectWord("init") || !c.expect(':') || !operand(init) ||
        !c.expect(')'))
      return false;
    operands.push_back(value);
    inits.push_back(init);
  } while (c.accept(','));
  size_t count = operands.size();
  operands.append(inits.begin(), inits.end());
  m.op(op).operands.assign(operands.begin(), operands.end());

  std::optional<Opcode> applied;
  c.blanks();
  const char* at = c.p;
  if (c.acceptWord("applies")) {
    c.blanks();
    at = c.p;
    llvm::StringRef name = c.word();
    applied = hlo::findOpcode(name);
    if (!applied) return c.error(Code::kUnknownOp, at, "unknown operation '" + name + "'");
    if (count != 1) return c.error("a reduce of several operands needs a reducer");
  }
  Ints dims;
  if (!c.expectWord("across") || !c.expectWord("dimensions") || !c.expect('=') || !ints(dims)) return false;
  m.setInts(op, AttrKey::dimensions, dims);
  if (c.accept('{') && !attrEntries(op, '}')) return false;
  if (!c.expect(':') || !functionType(op)) return false;

  if (applied) {
    RegionId region = m.addRegion(op, func_);
    const hlo::Type& init = m.typeOf(inits[0]);
    if (init.kind != hlo::TypeKind::kTensor)
      return c.error(Code::kSyntaxError, at, "reduces something that is no tensor");
    TypeId scalar = m.tensorType(init.element, {});
    ValueId a = m.addArg(region, scalar, LocId()), b = m.addArg(region, scalar, LocId());
    OpId fold = m.append(region, *applied, {a, b}, {scalar}, LocId());
    m.append(region, Opcode::return_, {m.op(fold).results[0]}, {}, LocId());
    applied_region_ = region;
    return true;
  }
  if (!c.expectWord("reducer")) return false;
  // Each bracket names the two arguments of one operand; the region takes all first ones, then all second
  // ones.
  RegionId region = m.addRegion(op, func_);
  size_t mark = openScope();
  struct Arg {
    llvm::StringRef name;
    TypeId type;
    LocId loc;
    const char* at;
  };
  llvm::SmallVector<Arg, 4> sides[2];
  for (size_t i = 0; i < count; ++i) {
    if (!c.expect('(')) return false;
    for (size_t side : {0, 1}) {
      if (side && !c.expect(',')) return false;
      c.blanks();
      Arg arg;
      arg.at = c.p;
      Location loc;
      if (!valueName(arg.name) || !c.expect(':')) return false;
      arg.type = type();
      if (c.failed() || !optionalLoc(loc)) return false;
      arg.loc = placeOf(loc, arg.at);
      sides[side].push_back(arg);
    }
    if (!c.expect(')')) return false;
  }
  for (const auto& side : sides)
    for (const Arg& arg : side) bind(arg.name, m.addArg(region, arg.type, arg.loc), 1, arg.at);
  if (depth_ > static_cast<uint32_t>(kMaxDepth))
    return c.error(Code::kTooDeep, c.p, "regions nest too deeply");
  if (!c.expect('{') || !regionBody(region)) return false;
  closeScope(mark);
  return true;
}

// while(%x = %a, %y = %b) : t, u attributes {...} cond { ... } do { ... }
bool Parser::prettyWhile(OpId op) {
  llvm::SmallVector<std::pair<llvm::StringRef, const char*>, 8> names;
  llvm::SmallVector<ValueId, 8> operands;
  llvm::SmallVector<TypeId, 8> types;
  if (!c.expect('(')) return false;
  if (!c.accept(')')) {
    do {
      c.blanks();
      const char* at = c.p;
      llvm::StringRef name;
      ValueId value;
      if (!valueName(name) || !c.expect('=') || !operand(value)) return false;
      names.push_back({name, at});
      operands.push_back(value);
    } while (c.accept(','));
    if (!c.expect(')')) return false;
  }
  m.op(op).operands.assign(operands.begin(), operands.end());
  c.blanks();
  const char* at = c.p;
  if (c.accept(':') && !bareTypes(types)) return false;
  if (!checkOperandTypes(op, types, at)) return false;
  if (c.acceptWord("attributes") && (!c.expect('{') || !attrEntries(op, '}'))) return false;
  if (depth_ > static_cast<uint32_t>(kMaxDepth))
    return c.error(Code::kTooDeep, c.p, "regions nest too deeply");
  for (llvm::StringRef keyword : {"cond", "do"}) {
    if (!c.expectWord(keyword) || !c.expect('{')) return false;
    RegionId region = m.addRegion(op, func_);
    size_t mark = openScope();
    for (size_t i = 0; i < names.size(); ++i)
      bind(names[i].first, m.addArg(region, types[i], textLoc(names[i].second)), 1, names[i].second);
    if (!regionBody(region)) return false;
    closeScope(mark);
  }
  for (TypeId t : types) m.addResult(op, t);
  return true;
}

// (%b: t) { ... } {attributes} : (t) -> t
bool Parser::computationBody(OpId op) {
  if (depth_ > static_cast<uint32_t>(kMaxDepth))
    return c.error(Code::kTooDeep, c.p, "regions nest too deeply");
  RegionId region = m.addRegion(op, func_);
  size_t mark = openScope();
  if (!c.expect('(') || !blockArgs(region) || !c.expect('{') || !regionBody(region)) return false;
  closeScope(mark);
  if (c.accept('{') && !attrEntries(op, '}')) return false;
  return c.expect(':') && functionType(op);
}

// sdy.manual_computation(%a) in_shardings=[...] out_shardings=[...] manual_axes={"x"} (%b: t) { ... } : (t)
// -> t
bool Parser::manualComputation(OpId op) {
  llvm::SmallVector<ValueId, 8> operands;
  if (!c.expect('(') || !operandList(operands) || !c.expect(')')) return false;
  m.op(op).operands.assign(operands.begin(), operands.end());
  Ints in, out;
  if (!c.expectWord("in_shardings") || !c.expect('=') || !shardingList(in)) return false;
  if (!c.expectWord("out_shardings") || !c.expect('=') || !shardingList(out)) return false;
  m.setInts(op, AttrKey::in_shardings, in);
  m.setInts(op, AttrKey::out_shardings, out);
  if (!c.expectWord("manual_axes") || !c.expect('=')) return false;
  // The axes are of the mesh that the shardings name; a computation without operands and results has any.
  hlo::MeshId mesh;
  if (!in.empty())
    mesh = m.sharding(hlo::ShardingId(static_cast<uint32_t>(in[0]))).mesh;
  else if (!out.empty())
    mesh = m.sharding(hlo::ShardingId(static_cast<uint32_t>(out[0]))).mesh;
  else if (!m.meshes.empty())
    mesh = hlo::MeshId(0);
  hlo::Mesh none;
  llvm::SmallVector<hlo::AxisRef, 4> axes;
  if (!axisList(mesh ? m.meshes[mesh.v] : none, axes)) return false;
  m.setAxes(op, AttrKey::manual_axes, mesh, axes);
  return computationBody(op);
}

// sdy.named_computation<"f">(%a) in_shardings=[...] out_shardings=[...] (%b: t) { ... } : (t) -> t
bool Parser::namedComputation(OpId op) {
  std::string name;
  llvm::SmallVector<ValueId, 8> operands;
  if (!c.expect('<') || !c.string(name) || !c.expect('>')) return false;
  m.setString(op, AttrKey::computation_name, name);
  if (!c.expect('(') || !operandList(operands) || !c.expect(')')) return false;
  m.op(op).operands.assign(operands.begin(), operands.end());
  for (AttrKey key : {AttrKey::in_shardings, AttrKey::out_shardings}) {
    Ints ids;
    if (!c.acceptWord(hlo::attrName(key))) continue;
    if (!c.expect('=') || !shardingList(ids)) return false;
    m.setInts(op, key, ids);
  }
  return computationBody(op);
}

// chlo.scan(%a) inits(%b) dimension=0 {is_reverse = true} { ^bb0(...): ... } : (t, u) -> (t, u)
bool Parser::prettyScan(OpId op) {
  llvm::SmallVector<ValueId, 8> inputs, inits;
  if (!c.expect('(') || !operandList(inputs) || !c.expect(')')) return false;
  if (c.acceptWord("inits") && (!c.expect('(') || !operandList(inits) || !c.expect(')'))) return false;
  m.setInts(op, AttrKey::operandSegmentSizes,
            {static_cast<int64_t>(inputs.size()), static_cast<int64_t>(inits.size())});
  inputs.append(inits.begin(), inits.end());
  m.op(op).operands.assign(inputs.begin(), inputs.end());
  int64_t dimension;
  if (!c.expectWord("dimension") || !c.expect('=') || !c.integer(dimension)) return false;
  m.setInt(op, AttrKey::dimension, dimension);
  for (;;) {  // "is_reverse = true", "attributes {...}"
    c.accept(',');
    if (!isLetter(c.peek())) break;
    const llvm::StringRef word = c.word();
    if (word == "attributes") {
      if (!c.expect('{') || !attrEntries(op, '}')) return false;
    } else if (!attrEntry(op, word.str())) {
      return false;
    }
  }
  return region(op) && (c.peek() != '{' || (c.accept('{') && attrEntries(op, '}'))) && c.expect(':') &&
         functionType(op);
}

}  // namespace tpu::frontend
