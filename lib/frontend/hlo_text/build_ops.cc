// Operations that are more than a row of opcodes.def, one by one.
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "build.h"
#include "tpu/hlo/sharding_mistakes.h"
#include "tpu/hlo/literal.h"

namespace tpu::frontend::hlo_text {

using llvm::StringRef;

bool Build::element(const Instruction& i, Cursor& at, ElementType type, uint8_t* out) {
  if (isComplex(type)) {
    double re, im;
    std::vector<uint8_t> part(8);
    const ElementType half = ElementType::kF64;
    if (!at.expect('(') || !element(i, at, half, part.data())) return false;
    std::memcpy(&re, part.data(), 8);
    if (!at.expect(',') || !element(i, at, half, part.data()) || !at.expect(')')) return false;
    std::memcpy(&im, part.data(), 8);
    hlo::storeComplex(type, re, im, out);
    return true;
  }
  at.blanks();
  const char* start = at.p;
  while (at.p < at.end && (isWordChar(*at.p) || *at.p == '+')) ++at.p;
  StringRef text(start, static_cast<size_t>(at.p - start));
  if (type == ElementType::kPred && (text == "true" || text == "false")) {
    *out = text == "true";
    return true;
  }
  if (isFloat(type)) {
    StringRef plain = text;
    const bool minus = plain.consume_front("-");
    double value;
    if (plain == "inf") {
      value = HUGE_VAL;
    } else if (plain == "nan") {
      value = std::numeric_limits<double>::quiet_NaN();
      if (at.p < at.end && *at.p == '(') at.skipGroup();  // a payload
    } else if (plain.empty() || plain.getAsDouble(value)) {
      return fail(i, "'" + text + "' is no number", Code::kBadLiteral);
    }
    hlo::storeDouble(type, minus ? -value : value, out);
    return true;
  }
  int64_t value;
  uint64_t large;
  if (text.getAsInteger(10, value)) {
    if (text.getAsInteger(10, large)) return fail(i, "'" + text + "' is no integer", Code::kBadLiteral);
    value = static_cast<int64_t>(large);
  }
  hlo::storeInt(type, value, out);
  return true;
}

// Braces only group; the order is row-major.
bool Build::elements(const Instruction& i, Cursor& at, const Shape& shape, std::vector<uint8_t>* out) {
  const size_t width = static_cast<size_t>(hostBytes(shape.element));
  int64_t wanted = 1;
  for (int64_t d : shape.dims) wanted *= d;
  int64_t count = 0;
  while (at.p < at.end) {
    const char ch = at.peek();
    if (at.p >= at.end) break;
    if (ch == '{' || ch == '}' || ch == ',') {
      ++at.p;
      continue;
    }
    uint8_t bytes[16] = {};
    if (!element(i, at, shape.element, bytes) || at.failed()) return false;
    out->insert(out->end(), bytes, bytes + width);
    ++count;
  }
  if (count == wanted || (count == 1 && wanted > 0)) return true;
  return fail(i, "the constant has " + llvm::Twine(count) + " elements, its type has " + llvm::Twine(wanted), Code::kBadLiteral);
}

// A constant whose data the printer left out can be partitioned but not run: a call that every stage which needs the
// data refuses, at this line of the text whatever the metadata says.
bool Build::elidedConstant(const Instruction& i, Val* out) {
  b.loc = textLoc(i.at);
  const OpId op = b.create(Opcode::custom_call, {}, {typeOf(i.shape)});
  m.setString(op, AttrKey::call_target_name, hlo::kElidedConstant);
  out->v = b.result(op);
  return true;
}

bool Build::constant(Frame&, const Instruction& i, Val* out) {
  if (i.shape.kind != Shape::kArray) return fail(i, "constant tuples are not read", Code::kUnsupportedFormat);
  if (i.inside.trim(" {}") == "...") return elidedConstant(i, out);
  const std::string copy = i.inside.str();
  Cursor at(copy, base_);
  hlo::Literal literal;
  literal.type = typeOf(i.shape);
  if (!elements(i, at, i.shape, &literal.bytes)) return c.failed() ? false : fail(i, "bad constant", Code::kBadLiteral);
  literal.splat = literal.bytes.size() == static_cast<size_t>(hostBytes(i.shape.element));
  out->v = b.constant(std::move(literal));
  return true;
}

// The same bytes under another type and layout: arrays are logical here, so the order of the bytes becomes transposes.
bool Build::bitcast(const Instruction& i, ValueId v, const Shape& from, Val* out) {
  const auto descending = [](const Shape& s) {
    Ints order;
    for (int64_t d = static_cast<int64_t>(s.dims.size()); d-- > 0;) order.push_back(d);
    return order;
  };
  const auto majorFirst = [&](const Shape& s) {
    Ints order(s.minor_to_major.begin(), s.minor_to_major.end());
    if (order.size() != s.dims.size()) order = descending(s);
    std::reverse(order.begin(), order.end());
    return order;
  };
  Ints to_physical = majorFirst(from), order = majorFirst(i.shape), from_physical(order.size());
  if (!hlo::permutationText(to_physical).empty() || !hlo::permutationText(order).empty()) return fail(i, "bad layout");
  for (size_t d = 0; d < order.size(); ++d) from_physical[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
  v = b.transpose(v, to_physical);
  Ints physical;
  for (int64_t d : order) physical.push_back(i.shape.dims[static_cast<size_t>(d)]);
  if (from.element != i.shape.element) {
    if (elementBits(from.element) != elementBits(i.shape.element))
      return fail(i, "a bitcast between types of different width is not read", Code::kUnsupportedFormat);
    const hlo::OpId op = b.create(Opcode::bitcast_convert, {v}, {m.tensorType(i.shape.element, m.typeOf(v).dims)});
    v = b.result(op);
  }
  int64_t have = m.typeOf(v).numElements(), want = 1;
  for (int64_t d : physical) want *= d;
  if (have != want) return fail(i, "a bitcast changes the number of elements");
  out->v = b.transpose(b.reshape(v, physical), from_physical);
  return true;
}

bool Build::whileLoop(const Instruction& i, const Val& state, Val* out) {
  const Computation *condition = called(i, "condition"), *body = called(i, "body");
  if (!condition || !body) return false;
  llvm::SmallVector<ValueId, 8> carried;
  if (!agrees(i.shape, state)) return fail(i, "'while' carries another tuple or array than is stated");
  if (!leaves(state, i.at, carried)) return false;
  llvm::SmallVector<hlo::TypeId, 8> types;
  for (ValueId v : carried) types.push_back(m.value(v).type);
  const OpId op = b.create(Opcode::while_, carried, types);
  const auto parameter = [&](llvm::ArrayRef<ValueId> args) { return Vals{assemble(i.shape, args)}; };
  if (!region(op, *condition, types, parameter) || !region(op, *body, types, parameter)) return false;
  const llvm::SmallVector<ValueId, 8> results(m.op(op).results.begin(), m.op(op).results.end());
  llvm::ArrayRef<ValueId> rest(results);
  *out = assemble(i.shape, rest);
  return true;
}

bool Build::conditional(const Instruction& i, const Vals& in, Val* out) {
  if (in.empty() || in[0].tuple || !in[0].v.valid() || m.typeOf(in[0].v).kind != hlo::TypeKind::kTensor)
    return fail(i, "'conditional' needs an index");
  std::vector<const Computation*> branches;
  if (!i.get("branch_computations").empty()) {
    for (StringRef name : splitList(i.get("branch_computations"))) {
      name.consume_front("%");
      const auto found = text_.by_name.find(name);
      if (found == text_.by_name.end()) return fail(i, "no computation '" + name + "'", Code::kUnknownName);
      branches.push_back(&text_.computations[found->second]);
    }
  } else {
    branches = {called(i, "true_computation"), called(i, "false_computation")};
    if (!branches[0] || !branches[1]) return false;
  }
  if (branches.size() + 1 != in.size()) return fail(i, "'conditional' needs one operand for each branch");
  std::vector<const Shape*> shapes;
  leaves(i.shape, shapes);
  llvm::SmallVector<hlo::TypeId, 8> types;
  for (const Shape* s : shapes) types.push_back(typeOf(*s));
  const bool by_pred = m.typeOf(in[0].v).element == ElementType::kPred;
  if (by_pred && branches.size() != 2) return fail(i, "'conditional' on a pred needs two branches");
  const OpId op = b.create(by_pred ? Opcode::if_ : Opcode::case_, {in[0].v}, types);
  for (size_t k = 0; k < branches.size(); ++k)
    if (!region(op, *branches[k], {}, [&](llvm::ArrayRef<ValueId>) { return Vals{in[k + 1]}; })) return false;
  const llvm::SmallVector<ValueId, 8> results(m.op(op).results.begin(), m.op(op).results.end());
  llvm::ArrayRef<ValueId> rest(results);
  *out = assemble(i.shape, rest);
  return true;
}

// Starts are scalars; in an old form one array of them.
bool Build::dynamicSlice(Frame& frame, const Instruction& i, Val* out) {
  llvm::SmallVector<ValueId, 8> in;
  if (!arrays(frame, i, &in)) return false;
  const bool update = i.opcode == "dynamic-update-slice";
  const size_t arrays_before = update ? 2 : 1;
  if (in.size() < arrays_before) return fail(i, "'" + i.opcode + "' has too few operands");
  if (in.size() == arrays_before + 1 && m.typeOf(in.back()).rank() == 1) {
    const ValueId starts = in.pop_back_val();
    const int64_t n = m.typeOf(starts).dims[0];
    for (int64_t k = 0; k < n; ++k) in.push_back(b.reshape(b.sliceDim(starts, 0, k, k + 1), {}));
  }
  const OpId op = b.create(update ? Opcode::dynamic_update_slice : Opcode::dynamic_slice, in, {typeOf(i.shape)});
  if (!update && !setInts(i, op, "dynamic_slice_sizes", AttrKey::slice_sizes, false)) return false;
  out->v = b.result(op);
  return true;
}

// One array split along a dimension; or, without a dimension, one array for each device of the group.
bool Build::allToAll(const Instruction& i, llvm::ArrayRef<ValueId> in, Val* out) {
  const auto exchange = [&](ValueId v, hlo::TypeId type, int64_t dim) -> std::optional<ValueId> {
    const OpId op = b.create(Opcode::all_to_all, {v}, {type});
    if (!groups(i, op)) return std::nullopt;
    int64_t channel;
    if (!i.get("channel_id").getAsInteger(10, channel)) {
      m.setInt(op, AttrKey::channel_id, channel);
      m.setInt(op, AttrKey::channel_type, 1);
    }
    m.setInt(op, AttrKey::split_dimension, dim);
    m.setInt(op, AttrKey::concat_dimension, dim);
    m.setInt(op, AttrKey::split_count, m.findAttr(op, AttrKey::replica_groups)->groups.cols);
    return b.result(op);
  };
  Ints dims;
  if (!readInts(i.get("dimensions"), dims)) return fail(i, "bad dimensions");
  if (dims.size() == 1) {
    if (in.size() != 1) return fail(i, "'all-to-all' along a dimension takes one array");
    const auto v = exchange(in[0], typeOf(i.shape), dims[0]);
    if (v) out->v = *v;
    return v.has_value();
  }
  if (in.empty()) return fail(i, "'all-to-all' needs an array");
  const hlo::Dims piece(m.typeOf(in[0]).dims);
  hlo::Dims row = piece;
  row.insert(row.begin(), 1);
  llvm::SmallVector<ValueId, 8> rows;
  for (ValueId v : in) rows.push_back(b.reshape(v, row));
  const ValueId all = b.concatenate(rows, 0);
  const auto v = exchange(all, m.value(all).type, 0);
  if (!v) return false;
  out->tuple = i.shape.kind == Shape::kTuple;
  for (size_t k = 0; k < in.size(); ++k) {
    Val part;
    part.v = b.reshape(b.sliceDim(*v, 0, static_cast<int64_t>(k), static_cast<int64_t>(k) + 1), piece);
    if (!out->tuple) out->v = part.v;
    else out->elements.push_back(part);
  }
  return true;
}

bool Build::rng(const Instruction& i, llvm::ArrayRef<ValueId> in, Val* out) {
  if (in.size() != 2) return fail(i, "'rng' takes two operands");
  const ValueId shape = b.ints(ElementType::kS64, i.shape.dims);
  const OpId op = b.create(Opcode::rng, {in[0], in[1], shape}, {typeOf(i.shape)});
  m.setString(op, AttrKey::rng_distribution, i.get("distribution") == "rng_normal" ? "NORMAL" : "UNIFORM");
  out->v = b.result(op);
  return true;
}

// Regions of reduce, sort and their like: scalars of the operands' element types.
bool Build::regions(const Instruction& i, OpId op, llvm::ArrayRef<ValueId> operands) {
  const Opcode opcode = m.op(op).opcode;
  const auto scalar = [&](ValueId v) { return m.tensorType(m.typeOf(v).element, {}); };
  const auto build = [&](StringRef name, llvm::ArrayRef<hlo::TypeId> types) {
    const Computation* body = called(i, name);
    return body && region(op, *body, types, [](llvm::ArrayRef<ValueId> args) {
             Vals parameters;
             for (ValueId v : args) {
               Val val;
               val.v = v;
               parameters.push_back(val);
             }
             return parameters;
           });
  };
  llvm::SmallVector<hlo::TypeId, 8> types;
  const size_t n = operands.size();
  switch (opcode) {
    case Opcode::reduce:
    case Opcode::reduce_window:
      for (size_t k = n / 2; k < n; ++k) types.push_back(scalar(operands[k]));
      for (size_t k = 0; k < n / 2; ++k) types.push_back(scalar(operands[k]));
      return build("to_apply", types);
    case Opcode::all_reduce:
    case Opcode::reduce_scatter:
      return build("to_apply", {scalar(operands[0]), scalar(operands[0])});
    case Opcode::map:
      for (ValueId v : operands) types.push_back(scalar(v));
      return build("to_apply", types);
    case Opcode::sort:
      for (ValueId v : operands) types.append(2, scalar(v));
      return build("to_apply", types);
    case Opcode::scatter:
      for (size_t k = 0; k < n / 2; ++k) types.push_back(scalar(operands[k]));
      for (size_t k = n / 2 + 1; k < n; ++k) types.push_back(scalar(operands[k]));
      return build("to_apply", types);
    case Opcode::select_and_scatter:
      return build("select", {scalar(operands[0]), scalar(operands[0])}) && build("scatter", {scalar(operands[1]), scalar(operands[1])});
    default: return true;
  }
}

bool Build::simple(Frame& frame, const Instruction& i, Opcode opcode, const Shape& shape, Val* out) {
  llvm::SmallVector<ValueId, 8> in;
  if (!arrays(frame, i, &in)) return false;
  const hlo::OpInfo& info = hlo::opInfo(opcode);
  const int n = static_cast<int>(in.size());
  if (n < info.min_operands || (info.max_operands >= 0 && n > info.max_operands) || (opcode == Opcode::scatter && n % 2 == 0) ||
      ((opcode == Opcode::reduce || opcode == Opcode::reduce_window) && n % 2 != 0))
    return fail(i, "'" + i.opcode + "' does not take " + llvm::Twine(n) + " operands");
  std::vector<const Shape*> shapes;
  leaves(shape, shapes);
  llvm::SmallVector<hlo::TypeId, 4> types;
  for (const Shape* s : shapes) types.push_back(typeOf(*s));
  // Several arrays reduced or gathered together are as many operations.
  const bool one_by_one = (opcode == Opcode::all_reduce || opcode == Opcode::all_gather || opcode == Opcode::reduce_scatter || opcode == Opcode::collective_permute) && n > 1;
  if (one_by_one && types.size() != in.size()) return fail(i, "'" + i.opcode + "' has another number of results than of operands");
  if (!one_by_one && info.results >= 0 && static_cast<int>(types.size()) != info.results)
    return fail(i, "'" + i.opcode + "' does not give " + llvm::Twine(types.size()) + " results");
  llvm::SmallVector<ValueId, 4> results;
  for (size_t k = 0; k < (one_by_one ? in.size() : 1); ++k) {
    const llvm::ArrayRef<ValueId> operands = one_by_one ? llvm::ArrayRef<ValueId>(in[k]) : llvm::ArrayRef<ValueId>(in);
    const OpId op = b.create(opcode, operands, one_by_one ? llvm::ArrayRef<hlo::TypeId>(types[k]) : llvm::ArrayRef<hlo::TypeId>(types));
    if (!attributes(i, op) || !regions(i, op, operands)) return false;
    if (!i.get("sharding").empty() && m.stage == hlo::Stage::kHlo) m.setString(op, AttrKey::mhlo_sharding, i.get("sharding"));
    results.append(m.op(op).results.begin(), m.op(op).results.end());
  }
  llvm::ArrayRef<ValueId> rest(results);
  *out = assemble(shape, rest);
  return true;
}

// The result of a "-start" is a tuple of operands, results and what else the compiler keeps; "-done" gives the results.
const Shape& Build::resultShape(const Instruction& i, StringRef opcode) {
  const bool whole = opcode == "all-reduce" || i.shape.kind != Shape::kTuple || i.shape.elements.size() < 2;
  return whole ? i.shape : i.shape.elements[1];
}

bool Build::started(Frame& frame, const Instruction& i, StringRef opcode, Val result, Val* out) {
  if (&resultShape(i, opcode) == &i.shape) {
    *out = result;
  } else {
    Val given;
    if (!operands(frame, i, &given.elements)) return false;
    given.tuple = i.shape.elements[0].kind == Shape::kTuple;
    if (!given.tuple && given.elements.size() == 1) given = Val(given.elements[0]);
    out->tuple = true;
    out->elements = {given, result};
  }
  out->done = std::make_shared<Val>(std::move(result));
  return true;
}

bool Build::enterManual(Frame& frame, const Instruction& i, Val* out) {
  auto manual = std::make_shared<Manual>();
  manual->enter = &i;
  llvm::SmallVector<ValueId, 8> in;
  if (!arrays(frame, i, &in)) return false;
  manual->operands.assign(in.begin(), in.end());
  out->tuple = i.shape.kind == Shape::kTuple;
  out->manual = manual;
  for (size_t k = 0; out->tuple && k < i.shape.elements.size(); ++k) {
    Val part;
    part.manual = manual;
    part.index = static_cast<int64_t>(k);
    out->elements.push_back(part);
  }
  return true;
}

bool Build::leaveManual(Frame& frame, const Instruction& i, Val* out) {
  Vals in;
  if (!operands(frame, i, &in)) return false;
  const std::shared_ptr<Manual> manual = in.empty() ? nullptr : in[0].manual;
  if (!manual || !manual->call) return fail(i, "a manual computation ends that has not begun");
  const Computation* body = called(*manual->call, "to_apply");
  if (!body) return false;
  std::vector<const Shape*> shapes, locals;
  leaves(i.shape, shapes);
  if (manual->enter) leaves(manual->enter->shape, locals);
  llvm::SmallVector<ValueId, 8> outside;
  llvm::SmallVector<hlo::TypeId, 8> inside, results;
  Ints in_all, in_shardings, out_shardings;
  if ((manual->enter && !shardingText(i, frontendAttribute(*manual->enter, "xla.sdy.in_shardings"), &in_all)) ||
      !shardingText(i, frontendAttribute(i, "xla.sdy.out_shardings"), &out_shardings))
    return false;
  for (int64_t k : manual->order) {
    if (k >= static_cast<int64_t>(manual->operands.size()) || k >= static_cast<int64_t>(in_all.size()) || k >= static_cast<int64_t>(locals.size()))
      return fail(i, "a manual computation takes what is not given to it");
    outside.push_back(manual->operands[static_cast<size_t>(k)]);
    inside.push_back(typeOf(*locals[static_cast<size_t>(k)]));
    in_shardings.push_back(in_all[static_cast<size_t>(k)]);
  }
  for (const Shape* s : shapes) results.push_back(typeOf(*s));
  const OpId op = b.create(Opcode::sdy_manual_computation, outside, results);
  m.setInts(op, AttrKey::in_shardings, in_shardings);
  m.setInts(op, AttrKey::out_shardings, out_shardings);
  if (!manualAxes(i, op, frontendAttribute(i, "xla.sdy.manual_axes"))) return false;
  if (!region(op, *body, inside, [](llvm::ArrayRef<ValueId> args) {
        Vals parameters(args.size());
        for (size_t k = 0; k < args.size(); ++k) parameters[k].v = args[k];
        return parameters;
      }))
    return false;
  const llvm::SmallVector<ValueId, 8> made(m.op(op).results.begin(), m.op(op).results.end());
  llvm::ArrayRef<ValueId> rest(made);
  *out = assemble(i.shape, rest);
  return true;
}

// Requests that Shardy leaves in HLO text as custom calls; the text of its own attribute says more than `sharding`.
bool Build::request(const Instruction& i, StringRef target, ValueId in, Val* out) {
  const hlo::TypeId type = m.value(in).type;
  if (const std::string text = frontendAttribute(i, "xla.sdy.sharding"); target == "Sharding" && !text.empty()) {
    Ints ids;
    if (!shardingText(i, text, &ids) || ids.size() != 1) return false;
    const OpId op = b.create(Opcode::sdy_sharding_constraint, {in}, {type});
    m.setSharding(op, AttrKey::sharding, hlo::ShardingId(static_cast<uint32_t>(ids[0])));
    out->v = b.result(op);
    return true;
  }
  if (target == "xla.sdy.ShardingGroup") {
    const std::string text = frontendAttribute(i, "xla.sdy.sharding_group_id");
    int64_t group;
    if (StringRef(text).split(' ').first.getAsInteger(10, group)) return false;
    m.setInt(b.create(Opcode::sdy_sharding_group, {in}, {}), AttrKey::group_id, group);
    out->tuple = true;
    return true;
  }
  if (target != "xla.sdy.PropagationBarrier") return false;
  const std::string text = frontendAttribute(i, "xla.sdy.allowed_direction");
  for (StringRef direction : {"NONE", "FORWARD", "BACKWARD", "BOTH"}) {
    if (!StringRef(text).contains(direction)) continue;
    const OpId op = b.create(Opcode::sdy_propagation_barrier, {in}, {type});
    m.setString(op, AttrKey::allowed_direction, direction);
    out->v = b.result(op);
    return true;
  }
  return false;
}

bool Build::comparator(const Instruction& i, OpId op) {
  StringRef name = i.get("called_computations").trim("{} ");
  name.consume_front("%");
  const auto found = text_.by_name.find(name);
  if (found == text_.by_name.end()) return true;
  std::string unused = name.str();
  for (int k = 1; m.findFunc(unused); ++k) unused = name.str() + "_" + std::to_string(k);
  const hlo::RegionId outside = b.region();
  const hlo::FuncId func = m.addFunc(unused, true);
  m.funcs[func.v].loc = textLoc(text_.computations[found->second].at);
  b.atEnd(m.func(func).body);
  Vals args;
  for (size_t k = 0; k < m.op(op).operands.size() / 2; ++k) {
    for (int side = 0; side < 2; ++side) {
      args.emplace_back();
      args.back().v = m.addArg(m.func(func).body, m.tensorType(m.typeOf(m.op(op).operands[k]).element, {}), b.loc);
    }
  }
  Val root;
  llvm::SmallVector<ValueId, 8> results;
  if (!computation(text_.computations[found->second], args, &root) || !leaves(root, i.at, results)) return false;
  m.funcs[func.v].arg_ports.resize(args.size());
  m.funcs[func.v].result_ports.resize(results.size());
  for (ValueId v : results) m.funcs[func.v].result_types.push_back(m.value(v).type);
  b.yield(results);
  b.atEnd(outside);
  m.setStrings(op, AttrKey::called_computations, {unused});
  return true;
}

bool Build::customCall(Frame& frame, const Instruction& i, Val* out) {
  const std::string target = unquoted(i.get("custom_call_target"));
  if (target == "xla.sdy.GlobalToLocalShape") return enterManual(frame, i, out);
  if (target == "xla.sdy.LocalToGlobalShape") return leaveManual(frame, i, out);
  llvm::SmallVector<ValueId, 8> in;
  if (!arrays(frame, i, &in)) return false;
  if (target == "xla.sdy.FuncResultSharding" && in.size() == 1) {
    Ints ids;
    if (!shardingText(i, frontendAttribute(i, "xla.sdy.sharding"), &ids)) return false;
    // Another use of the value may ask for another sharding: the request stands on a value of its own.
    const OpId op = b.create(Opcode::optimization_barrier, {in[0]}, {m.value(in[0]).type});
    out->v = b.result(op);
    result_shardings_[out->v.v] = hlo::ShardingId(static_cast<uint32_t>(ids[0]));
    return true;
  }
  if (in.size() == 1 && request(i, target, in[0], out)) return true;
  std::vector<const Shape*> shapes;
  leaves(i.shape, shapes);
  llvm::SmallVector<hlo::TypeId, 4> types;
  for (const Shape* s : shapes) types.push_back(typeOf(*s));
  if (target == "TopK" && in.size() == 1 && types.size() == 2 && !m.type(types[0]).dims.empty()) {
    const OpId top = b.create(Opcode::chlo_top_k, in, types);
    m.setInt(top, AttrKey::k, m.type(types[0]).dims.back());
    llvm::SmallVector<ValueId, 2> both(m.op(top).results.begin(), m.op(top).results.end());
    llvm::ArrayRef<ValueId> rest(both);
    *out = assemble(i.shape, rest);
    return true;
  }
  const OpId op = b.create(Opcode::custom_call, in, types);
  if ((target == "PartialReduce" || target == "ApproxTopK") && !comparator(i, op)) return false;
  m.setString(op, AttrKey::call_target_name, target);
  m.setBool(op, AttrKey::has_side_effect, i.get("custom_call_has_side_effect") == "true");
  if (!i.get("backend_config").empty()) m.setString(op, AttrKey::backend_config, stringOfMlir(i.get("backend_config")));
  if (!i.get("sharding").empty()) m.setString(op, AttrKey::mhlo_sharding, i.get("sharding"));
  if (const std::string rule = frontendAttribute(i, "xla.sdy.sharding_rule"); !rule.empty()) m.setString(op, AttrKey::sharding_rule, rule);
  const llvm::SmallVector<ValueId, 4> made(m.op(op).results.begin(), m.op(op).results.end());
  llvm::ArrayRef<ValueId> rest(made);
  *out = assemble(i.shape, rest);
  return true;
}

}  // namespace tpu::frontend::hlo_text
