// Custom calls that a program in the operation set means: approximate top-k, as JAX prints it for a TPU (ApproxTopK) and as
// XLA keeps it (PartialReduce). Both may give the exact answer, so they are a sort by their comparator, cut to what the
// result holds.
#include "tpu/hlo/analysis.h"
#include "tpu/hlo/builder.h"

namespace tpu::hlo {
namespace {

// The number behind a name in "reduction_dim = 0 : i64" or "\"reduction_dim\": 1", quotes also spelled \22 as MLIR does.
std::optional<int64_t> numberIn(llvm::StringRef text, llvm::StringRef name) {
  const size_t at = text.find(name);
  if (at == llvm::StringRef::npos) return std::nullopt;
  text = text.substr(at + name.size());
  text.consume_front("\\22");
  text = text.drop_while([](char ch) { return ch == '"' || ch == '\\' || ch == ' ' || ch == '=' || ch == ':'; });
  int64_t value;
  return text.consumeInteger(10, value) ? std::nullopt : std::optional(value);
}

struct TopK {
  FuncId comparator;
  size_t arrays = 0;  // those in front; as many start values follow
  int64_t dim = 0;
};

// None where the call is another one, or not of the form that its meaning asks for.
std::optional<TopK> topKOf(const Module& m, OpId id) {
  const Op& op = m.op(id);
  if (op.opcode != Opcode::custom_call) return std::nullopt;
  const llvm::StringRef target = m.getString(id, AttrKey::call_target_name);
  const Attr* called = m.findAttr(id, AttrKey::called_computations);
  if ((target != "ApproxTopK" && target != "PartialReduce") || !called || called->strs.size() != 1) return std::nullopt;
  TopK out{m.findFunc(called->strs[0]), op.operands.size() / 2, 0};
  auto dim = numberIn(m.getString(id, AttrKey::extra), "reduction_dim");
  if (!dim) dim = numberIn(m.getString(id, AttrKey::backend_config), "reduction_dim");
  if (!out.comparator || !dim || out.arrays == 0 || op.operands.size() != 2 * out.arrays ||
      op.results.size() != out.arrays)
    return std::nullopt;
  const Type& first = m.typeOf(op.operands[0]);
  out.dim = *dim < 0 ? *dim + first.rank() : *dim;
  if (out.dim < 0 || out.dim >= first.rank()) return std::nullopt;
  const auto& args = m.region(m.func(out.comparator).body).args;
  const auto& results = m.func(out.comparator).result_types;
  if (args.size() != 2 * out.arrays || results.size() != 1) return std::nullopt;
  Type pred;
  pred.element = ElementType::kPred;
  if (!compatible(m.type(results[0]), pred)) return std::nullopt;
  for (size_t i = 0; i < out.arrays; ++i) {
    const Type& in = m.typeOf(op.operands[i]);
    Type cut = in, scalar;
    scalar.element = in.element;
    if (in.dims != first.dims || m.typeOf(op.results[i]).dims.size() != in.dims.size()) return std::nullopt;
    int64_t& size = cut.dims[static_cast<size_t>(out.dim)];
    const int64_t kept = m.typeOf(op.results[i]).dims[static_cast<size_t>(out.dim)];
    if (size == kDynamicDim || kept < 0 || kept > size) return std::nullopt;
    size = kept;
    if (!compatible(cut, m.typeOf(op.results[i])) || !compatible(scalar, m.typeOf(args[2 * i])) ||
        !compatible(scalar, m.typeOf(args[2 * i + 1])))
      return std::nullopt;
  }
  return out;
}

}  // namespace

bool expandKnownCalls(Module& m, llvm::function_ref<bool(llvm::StringRef)> keep) {
  std::vector<OpId> found;
  walk(m, [&](OpId id) {
    if (topKOf(m, id) && !(keep && keep(m.getString(id, AttrKey::call_target_name)))) found.push_back(id);
  });
  if (found.empty()) return false;
  std::vector<ValueId> becomes(m.numValues());
  for (OpId id : found) {
    const TopK top = *topKOf(m, id);
    const Op call = m.op(id);
    auto& around = m.region(call.parent).ops;
    const auto at = llvm::find(around, id);
    Builder b(m, call.parent, call.loc);
    b.at(call.parent, static_cast<size_t>(at - around.begin()));
    const llvm::SmallVector<ValueId, 4> arrays(call.operands.begin(),
                                               call.operands.begin() + static_cast<long>(top.arrays));
    llvm::SmallVector<TypeId, 4> types, scalars;
    for (ValueId v : arrays) {
      types.push_back(m.value(v).type);
      scalars.append(2, m.tensorType(m.typeOf(v).element, {}));
    }
    const OpId sort = b.create(Opcode::sort, arrays, types);
    m.setInt(sort, AttrKey::dimension, top.dim);
    m.setBool(sort, AttrKey::is_stable, true);
    const RegionId region = b.addRegion(sort);
    Builder inside(m, region, call.loc);
    llvm::SmallVector<ValueId, 8> args;
    for (TypeId type : scalars) args.push_back(m.addArg(region, type, call.loc));
    inside.yield({inside.result(inside.call(top.comparator, args))});
    for (size_t i = 0; i < top.arrays; ++i) {
      const int64_t kept = m.typeOf(call.results[i]).dims[static_cast<size_t>(top.dim)];
      becomes[call.results[i].v] = b.sliceDim(m.op(sort).results[i], top.dim, 0, kept);
    }
  }
  m.replaceUses(becomes);
  for (OpId id : found) llvm::erase(m.region(m.op(id).parent).ops, id);
  return true;
}

}  // namespace tpu::hlo
