// One operation: its results, its form (generic in quotes, or pretty), its types, its location.
#include "llvm/ADT/StringSwitch.h"
#include "parser.h"
#include "rules.h"

namespace tpu::frontend {

using hlo::Type;
using hlo::TypeKind;

namespace {

// Ops of other dialects that say the same as one of ours.
std::optional<hlo::Opcode> opcodeOf(llvm::StringRef name) {
  if (name == "return") return hlo::Opcode::return_;
  if (name == "call") return hlo::Opcode::call;
  if (!name.contains('.')) return std::nullopt;
  if (auto opcode = hlo::findOpcode(name)) return opcode;
  if (name == "arith.constant" || name == "sdy.constant") return hlo::Opcode::constant;
  if (name == "mhlo.copy") return hlo::Opcode::convert;  // to the same type
  if (isTestDialect(name)) return hlo::Opcode::custom_call;
  // MHLO's operations are StableHLO's, where they were taken over, or CHLO's (mhlo.erf, which TensorFlow prints).
  if (name.consume_front("mhlo."))
    for (const char* dialect : {"stablehlo.", "chlo."})
      if (auto opcode = hlo::findOpcode((dialect + name).str())) return opcode;
  return std::nullopt;
}

}  // namespace

bool Parser::parseOp() {
  Results results;
  if (c.peek() == '%') {
    do {
      c.blanks();
      Result result;
      result.at = c.p;
      if (!valueName(result.name)) return false;
      int64_t count = 1;
      if (c.accept(':')) {
        if (!c.digits(count)) return false;
        if (count < 1 || count > 1'000'000) return c.error("bad number of results");
      }
      result.count = static_cast<uint32_t>(count);
      results.push_back(result);
    } while (c.accept(','));
    if (!c.expect('=')) return false;
  }
  c.blanks();
  const char* at = c.p;
  bool generic = *c.p == '"';
  llvm::StringRef name;
  if (generic) {
    if (!c.rawString(name)) return false;
  } else {
    name = c.word();
  }
  auto opcode = opcodeOf(name);
  if (!opcode) {
    if (name.empty()) return c.error("expected an operation");
    return c.error(Code::kUnknownOp, at, "unknown operation '" + name + "'");
  }
  OpId op = m.append(region_, *opcode, {}, {}, LocId());
  if (isTestDialect(name)) {
    m.setString(op, AttrKey::call_target_name, name);
    m.setBool(op, AttrKey::has_side_effect, true);
  }
  std::pair<int, int> place = c.lineColumn(at);
  bool done = generic ? genericOp(op) : prettyOp(op);
  if (done && isTestDialect(name)) checkDefaults(op);
  return done && finishOp(op, results, at, place);
}

bool Parser::finishOp(OpId op, const Results& results, const char* at, std::pair<int, int> place) {
  Location loc;
  if (!optionalLoc(loc)) return false;
  LocId id = placeOf(loc, place);
  if (applied_region_) {  // "applies stablehlo.add": its ops have no place of their own
    const hlo::Region& body = m.region(applied_region_);
    for (ValueId v : body.args) m.value(v).loc = id;
    for (OpId inner : body.ops) {
      m.op(inner).loc = id;
      for (ValueId v : m.op(inner).results) m.value(v).loc = id;
    }
    applied_region_ = RegionId();
  }
  m.op(op).loc = id;
  for (ValueId v : m.op(op).results) m.value(v).loc = id;
  size_t found = m.op(op).results.size(), named = 0;
  for (const Result& result : results) named += result.count;
  if (!results.empty() && named != found)
    return c.error(Code::kSyntaxError, at,
                   "operation has " + llvm::Twine(found) + " results, " + llvm::Twine(named) + " are named");
  size_t next = 0;
  for (const Result& result : results) {
    bind(result.name, m.op(op).results[next], result.count, result.at);
    next += result.count;
  }
  if (c.failed()) return false;
  if (const hlo::Attr* attr = m.findAttr(op, AttrKey::result_shardings))
    for (size_t i = 0; i < attr->ints.size() && i < found; ++i)
      m.value(m.op(op).results[i]).sharding = hlo::ShardingId(static_cast<uint32_t>(attr->ints[i]));
  fillDefaults(m, op);
  return true;
}

bool Parser::genericOp(OpId op) {
  llvm::SmallVector<ValueId, 8> operands;
  if (!c.expect('(') || !operandList(operands) || !c.expect(')')) return false;
  m.op(op).operands.assign(operands.begin(), operands.end());
  if (c.accept('[')) return c.error("successors are not part of StableHLO");
  if (c.accept('<')) {
    if (!c.expect('{') || !attrEntries(op, '}') || !c.expect('>')) return false;
  }
  if (c.accept('(')) {
    do
      if (!region(op)) return false;
    while (c.accept(','));
    if (!c.expect(')')) return false;
  }
  if (c.accept('{') && !attrEntries(op, '}')) return false;
  return c.expect(':') && functionType(op);
}

bool Parser::checkOperandTypes(OpId op, llvm::ArrayRef<TypeId> types, const char* at) {
  const auto& operands = m.op(op).operands;
  if (types.size() != operands.size())
    return c.error(Code::kSyntaxError, at,
                   llvm::Twine(types.size()) + " types for " + llvm::Twine(operands.size()) + " operands");
  for (size_t i = 0; i < types.size(); ++i)
    if (m.value(operands[i]).type != types[i])
      return c.error(Code::kSyntaxError, at,
                     "operand " + llvm::Twine(i) + " has another type than the one stated");
  return true;
}

bool Parser::functionType(OpId op) {
  c.blanks();
  const char* at = c.p;
  llvm::SmallVector<TypeId, 8> in, out;
  if (!typeList(in) || !c.expect("->") || !typeList(out)) return false;
  if (!checkOperandTypes(op, in, at)) return false;
  for (TypeId t : out) m.addResult(op, t);
  return true;
}

// After the operands: ": (t, t) -> t", ": t, t -> t" or the short forms where types repeat.
bool Parser::trailingTypes(OpId op, bool optional) {
  if (!c.accept(':')) return optional || c.error("expected ':'");
  c.blanks();
  const char* at = c.p;
  llvm::SmallVector<TypeId, 8> types, out;
  bool list = *c.p == '(';
  if (list ? !typeList(types) : !bareTypes(types)) return false;
  if (c.accept("->")) {
    if (!typeList(out) || !checkOperandTypes(op, types, at)) return false;
    for (TypeId t : out) m.addResult(op, t);
    return true;
  }
  size_t operands = m.op(op).operands.size();
  switch (m.op(op).opcode) {
    case Opcode::return_:
    case Opcode::sdy_sharding_group:
      return checkOperandTypes(op, types, at);
    case Opcode::optimization_barrier:
      if (!checkOperandTypes(op, types, at)) return false;
      for (TypeId t : types) m.addResult(op, t);
      return true;
    case Opcode::select:
      if (types.size() == 2) types.erase(types.begin());
      break;
    default:
      break;
  }
  if (types.size() != 1)
    return c.error(Code::kSyntaxError, at,
                   llvm::Twine(types.size()) + " types for " + llvm::Twine(operands) + " operands");
  if (hlo::hasTrait(m.op(op).opcode, hlo::kSameTypeResult) && operands &&
      m.value(m.op(op).operands[0]).type != types[0])
    return c.error(Code::kSyntaxError, at, "operand 0 has another type than the one stated");
  m.addResult(op, types[0]);
  return true;
}

bool Parser::dotPairs(OpId op, AttrKey lhs, AttrKey rhs) {
  Ints a, b;
  if (!ints(a) || !c.expectWord("x") || !ints(b)) return false;
  m.setInts(op, lhs, a);
  m.setInts(op, rhs, b);
  return true;
}

bool Parser::keyword(OpId op, llvm::StringRef word) {
  Opcode opcode = m.op(op).opcode;
  const char* at = word.data();
  if (opcode == Opcode::compare && c.peek() != '=') return setEnum(op, AttrKey::compare_type, word, at);
  if (opcode == Opcode::reduce_precision && word == "format") {
    // "e5m10" is one word.
    if (!c.expect('=')) return false;
    llvm::StringRef format = c.word();
    auto [exponent, mantissa] = format.drop_front(format.starts_with("e")).split('m');
    int64_t e, f;
    if (exponent.getAsInteger(10, e) || mantissa.getAsInteger(10, f))
      return c.error("expected a format like e5m10");
    m.setInt(op, AttrKey::exponent_bits, e);
    m.setInt(op, AttrKey::mantissa_bits, f);
    return true;
  }
  if (!c.expect('=')) return false;
  if (opcode == Opcode::custom_call) return checkKeyword(op, word, at);
  if (word == "batching_dims")
    return dotPairs(op, AttrKey::lhs_batching_dimensions, AttrKey::rhs_batching_dimensions);
  if (word == "contracting_dims")
    return dotPairs(op, AttrKey::lhs_contracting_dimensions, AttrKey::rhs_contracting_dimensions);
  if (word == "dim_numbers") return convolutionDims(op);
  if (word == "window") return windowAttr(op);
  std::optional<AttrKey> key;
  switch (opcode) {
    case Opcode::broadcast_in_dim:
    case Opcode::dynamic_broadcast_in_dim:
      if (word == "dims") key = AttrKey::broadcast_dimensions;
      break;
    case Opcode::transpose:
      if (word == "dims") key = AttrKey::permutation;
      break;
    case Opcode::reverse:
      if (word == "dims") key = AttrKey::dimensions;
      break;
    case Opcode::iota:
    case Opcode::dynamic_iota:
      if (word == "dim") key = AttrKey::iota_dimension;
      break;
    case Opcode::broadcast:
      if (word == "sizes") key = AttrKey::broadcast_sizes;
      break;
    case Opcode::fft:
      if (word == "type") key = AttrKey::fft_type;
      if (word == "length") key = AttrKey::fft_length;
      break;
    case Opcode::rng_bit_generator:
      if (word == "algorithm") key = AttrKey::rng_algorithm;
      break;
    case Opcode::rng:
      if (word == "distribution") key = AttrKey::rng_distribution;
      break;
    default:
      break;
  }
  if (!key)
    key = llvm::StringSwitch<std::optional<AttrKey>>(word)
              .Case("dim", AttrKey::dimension)
              .Case("dims", AttrKey::dimensions)
              .Case("sizes", AttrKey::slice_sizes)
              .Case("low", AttrKey::edge_padding_low)
              .Case("high", AttrKey::edge_padding_high)
              .Case("interior", AttrKey::interior_padding)
              .Case("precision", AttrKey::precision_config)
              .Case("config", AttrKey::einsum_config)
              .Case("out_sharding", AttrKey::sharding)
              .Default(hlo::findAttrKey(word));
  if (!key) return c.error(Code::kSyntaxError, at, "unknown keyword '" + word + "'");
  in_keyword_ = true;
  bool done = attrValue(op, *key);
  in_keyword_ = false;
  return done;
}

bool Parser::keywords(OpId op) {
  do {
    c.blanks();
    llvm::StringRef word = c.word();
    if (word.empty()) return c.error("expected a keyword");
    if (!keyword(op, word)) return false;
  } while (c.accept(','));
  return true;
}

// "[0:1, 2:8:2]"
bool Parser::sliceRanges(OpId op) {
  Ints start, limit, stride;
  if (!c.expect('[')) return false;
  if (!c.accept(']')) {
    do {
      int64_t a, b, s = 1;
      if (!c.integer(a) || !c.expect(':') || !c.integer(b)) return false;
      if (c.accept(':') && !c.integer(s)) return false;
      start.push_back(a);
      limit.push_back(b);
      stride.push_back(s);
    } while (c.accept(','));
    if (!c.expect(']')) return false;
  }
  m.setInts(op, AttrKey::start_indices, start);
  m.setInts(op, AttrKey::limit_indices, limit);
  m.setInts(op, AttrKey::strides, stride);
  return true;
}

bool Parser::prettyOp(OpId op) {
  Opcode opcode = m.op(op).opcode;
  if (opcode == Opcode::reduce) return prettyReduce(op);
  if (opcode == Opcode::while_) return prettyWhile(op);
  if (opcode == Opcode::chlo_scan) return prettyScan(op);
  if (opcode == Opcode::sdy_manual_computation) return manualComputation(op);
  if (opcode == Opcode::sdy_named_computation) return namedComputation(op);
  c.blanks();
  const char* at = c.p;

  // What may stand before the operands.
  if (opcode == Opcode::compare) {
    llvm::StringRef direction = c.word();
    if (!setEnum(op, AttrKey::comparison_direction, direction, at) || !c.expect(',')) return false;
  } else if (opcode == Opcode::call) {
    std::string callee;
    if (!symbol(callee)) return false;
    m.setString(op, AttrKey::callee, callee);
  } else if (opcode == Opcode::custom_call && *c.p == '@') {
    std::string target;
    if (!symbol(target)) return false;
    m.setString(op, AttrKey::call_target_name, target);
  } else if (opcode == Opcode::composite) {
    std::string name;
    if (!c.string(name)) return false;
    m.setString(op, AttrKey::composite_name, name);
  } else if ((*c.p == '[' || *c.p == '{') && hlo::opInfo(opcode).name.starts_with("sdy.")) {
    if (!c.skipGroup()) return false;  // the axes of an explicit collective
    m.setString(op, AttrKey::dim_axes, llvm::StringRef(at, static_cast<size_t>(c.p - at)));
  }

  bool bracketed = c.accept('(');
  llvm::SmallVector<ValueId, 8> operands;
  if (!operandList(operands)) return false;
  m.op(op).operands.assign(operands.begin(), operands.end());
  bool comma = trailing_comma_;  // opens the keywords
  if (bracketed) {
    if (comma && !keywords(op)) return false;
    if (!c.expect(')')) return false;
    comma = c.accept(',');
  }

  c.blanks();
  switch (opcode) {
    case Opcode::constant:
    case Opcode::chlo_constant: {
      if (c.accept('{') && !attrEntries(op, '}')) return false;
      hlo::Literal value;
      if (!literal(value)) return false;
      TypeId t = value.type;
      m.setLiteral(op, m.addLiteral(std::move(value)));
      m.addResult(op, t);
      return true;
    }
    case Opcode::slice:
      if (!sliceRanges(op)) return false;
      break;
    case Opcode::get_tuple_element: {
      int64_t index;
      if (!c.expect('[') || !c.integer(index) || !c.expect(']')) return false;
      m.setInt(op, AttrKey::index, index);
      break;
    }
    case Opcode::sdy_sharding_constraint:
    case Opcode::sdy_reshard: {
      hlo::ShardingId id;
      if (!sharding(id)) return false;
      m.setSharding(op, AttrKey::sharding, id);
      break;
    }
    case Opcode::custom_call:
      if (isTestDialect(m.getString(op, AttrKey::call_target_name)) && !bracketed)
        return prettyCheck(op, comma);
      break;
    default:
      break;
  }
  // "window = {...}" and "group_id=1" follow without a comma in some forms.
  bool loc = llvm::StringRef(c.p, static_cast<size_t>(c.end - c.p)).starts_with("loc(");
  if ((comma || (isLetter(*c.p) && !loc)) && !keywords(op)) return false;
  if (c.accept('{') && !attrEntries(op, '}')) return false;
  bool untyped = opcode == Opcode::return_ && operands.empty();
  if (untyped && c.peek() != ':') return true;
  return trailingTypes(op, untyped);
}

}  // namespace tpu::frontend
