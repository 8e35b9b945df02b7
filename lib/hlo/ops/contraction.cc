// Rules of dot products. The element type of the result may be wider than the operands' and is taken as
// stated.
#include "quantization.h"

namespace tpu::hlo {
namespace {

ElementType resultElement(OpCheck& c) {
  return c.numOut() == 1 && c.out(0).kind == TypeKind::kTensor ? c.out(0).element : c.in(0).element;
}

llvm::Error needPairs(OpCheck& c, AttrKey lhs, AttrKey rhs, Label count, Label sizes) {
  if (auto e = c.needLength(rhs, c.ints(lhs).size(), count)) return e;
  for (size_t i = 0; i < c.ints(lhs).size(); ++i) {
    int64_t a = c.in(0).dims[static_cast<size_t>(c.ints(lhs)[i])];
    int64_t b = c.in(1).dims[static_cast<size_t>(c.ints(rhs)[i])];
    if (a != b && a != kDynamicDim && b != kDynamicDim)
      return c.fail(sizes, "pairs dimension " + llvm::Twine(c.ints(lhs)[i]) + " of " + c.text(c.in(0)) +
                               " with dimension " + llvm::Twine(c.ints(rhs)[i]) + " of " + c.text(c.in(1)));
  }
  return llvm::Error::success();
}

llvm::Error needSide(OpCheck& c, size_t operand, AttrKey batching, AttrKey contracting) {
  int64_t rank = c.in(operand).rank();
  const Label unique = C(3 + operand);
  if (auto e = c.needDims(batching, rank, C(5 + 2 * operand), unique)) return e;
  if (auto e = c.needDims(contracting, rank, C(6 + 2 * operand), unique)) return e;
  for (int64_t dim : c.ints(batching))
    if (llvm::is_contained(c.ints(contracting), dim))
      return c.fail(unique, "dimension " + llvm::Twine(dim) + " of operand " + llvm::Twine(operand) +
                                " is batching and contracting");
  return llvm::Error::success();
}

// C11, C21-C24.
llvm::Error needPrecision(OpCheck& c) {
  if (auto e = c.needPrecisions(C(11))) return e;
  const Attr* precision = c.m.findAttr(c.id, AttrKey::precision_config);
  const llvm::StringRef algorithm = c.m.getString(c.id, AttrKey::algorithm);
  if (algorithm.empty()) return llvm::Error::success();
  for (size_t i = 0; precision && i < precision->strs.size(); ++i)
    if (precision->strs[i] != "DEFAULT")
      return c.fail(C(21), "asks for an algorithm and for precision " + precision->strs[i]);
  constexpr llvm::StringRef kFields[] = {"lhs_precision_type",  "rhs_precision_type",       "accumulation_type",
                                         "lhs_component_count", "rhs_component_count",      "num_primitive_operations",
                                         "allow_imprecise_accumulation"};
  llvm::StringRef rest = algorithm.trim("<> ");
  for (size_t i = 0; i < std::size(kFields); ++i) {
    if (i > 0) rest.consume_front(",");
    const bool named = (rest = rest.ltrim()).consume_front(kFields[i]) && (rest = rest.ltrim()).consume_front("=");
    const llvm::StringRef value = rest.take_until([](char ch) { return ch == ','; });
    if (!named || value.trim().empty())
      return c.fail(I(8 + i), "expected " + kFields[i] + " of the algorithm, found '" + rest + "'");
    rest = rest.drop_front(value.size());
  }
  constexpr llvm::StringRef kCounts[] = {"lhs_component_count", "rhs_component_count",
                                         "num_primitive_operations"};
  for (size_t i = 0; i < 3; ++i) {
    rest = algorithm.split(kCounts[i]).second.ltrim();
    int64_t count = 1;
    rest.consume_front("=");
    rest = rest.ltrim();
    if (rest.consumeInteger(10, count) || count < 1)
      return c.fail(C(22 + i),
                    kCounts[i] + " of the algorithm must be a positive number");
  }
  return llvm::Error::success();
}

// C13, C15, C16.
llvm::Error needElements(OpCheck& c) {
  if (!anyQuantized(c)) return c.needSameKind(C(13));
  if (auto e = needContractionQuantization(c, C(14), 17)) return e;
  const std::optional<Quantization> rhs = parseQuantization(c.in(1).encoding);
  if (!rhs) return llvm::Error::success();
  if (llvm::any_of(rhs->zero_points, [](int64_t zero) { return zero != 0; }))
    return c.fail(C(15), "zero points of the rhs are not 0: " + c.in(1).encoding);
  const int64_t along = quantizedDim(*rhs);
  if (along >= 0 && llvm::is_contained(c.ints(AttrKey::rhs_contracting_dimensions), along))
    return c.fail(C(16),
                  "scales of the rhs vary along dimension " + llvm::Twine(along) + ", which is contracted");
  return llvm::Error::success();
}

}  // namespace

llvm::Error ruleDotGeneral(OpCheck& c) {
  c.resultsBy({}, C(12));
  if (auto e = c.needTensors()) return e;
  constexpr AttrKey kBatch[] = {AttrKey::lhs_batching_dimensions, AttrKey::rhs_batching_dimensions};
  constexpr AttrKey kContract[] = {AttrKey::lhs_contracting_dimensions, AttrKey::rhs_contracting_dimensions};
  for (size_t side : {0, 1})
    if (auto e = needSide(c, side, kBatch[side], kContract[side])) return e;
  if (auto e = needPairs(c, kBatch[0], kBatch[1], C(1), C(9))) return e;
  if (auto e = needPairs(c, kContract[0], kContract[1], C(2), C(10))) return e;
  if (auto e = needPrecision(c)) return e;
  if (auto e = needElements(c)) return e;
  Dims dims;
  for (int64_t dim : c.ints(kBatch[0])) dims.push_back(c.in(0).dims[static_cast<size_t>(dim)]);
  for (size_t side : {0, 1})
    for (int64_t d = 0; d < c.in(side).rank(); ++d)
      if (!llvm::is_contained(c.ints(kBatch[side]), d) && !llvm::is_contained(c.ints(kContract[side]), d))
        dims.push_back(c.in(side).dims[static_cast<size_t>(d)]);
  c.yield(resultElement(c), dims);
  return llvm::Error::success();
}

llvm::Error ruleDot(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  const Type& a = c.in(0);
  const Type& b = c.in(1);
  bool fits = a.rank() >= 1 && a.rank() <= 2 && b.rank() >= 1 && b.rank() <= 2;
  if (fits)
    fits = a.dims.back() == b.dims.front() || a.dims.back() == kDynamicDim || b.dims.front() == kDynamicDim;
  if (!fits) return c.fail("cannot multiply " + c.text(a) + " by " + c.text(b));
  Dims dims;
  if (a.rank() == 2) dims.push_back(a.dims[0]);
  if (b.rank() == 2) dims.push_back(b.dims[1]);
  c.yield(resultElement(c), dims);
  return llvm::Error::success();
}

// lhs [b, m, k], rhs [g, b, k, n] and sizes [g] of groups along one dimension of lhs. Where that is a free one, the result is
// [b, m, n]; a contracted one gives [g, b, m, n]; along a batch dimension groups change nothing.
llvm::Error ruleRaggedDot(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  if (auto e = c.needGiven()) return e;
  constexpr AttrKey kBatch[] = {AttrKey::lhs_batching_dimensions, AttrKey::rhs_batching_dimensions};
  constexpr AttrKey kContract[] = {AttrKey::lhs_contracting_dimensions, AttrKey::rhs_contracting_dimensions};
  constexpr AttrKey kRagged[] = {AttrKey::lhs_ragged_dimensions, AttrKey::rhs_group_dimensions};
  for (size_t side : {0, 1}) {
    llvm::SmallVector<int64_t, 8> named;
    const auto dims = [&](AttrKey key) -> llvm::Error {
      for (int64_t dim : c.ints(key)) {
        if (dim < 0 || dim >= c.in(side).rank())
          return c.fail(attrName(key) + " " + listText(c.ints(key)) + " leave the rank of " + c.text(c.in(side)));
        if (llvm::is_contained(named, dim))
          return c.fail("dimension " + llvm::Twine(dim) + " of operand " + llvm::Twine(side) + " is named twice");
        named.push_back(dim);
      }
      return llvm::Error::success();
    };
    for (AttrKey key : {kBatch[side], kContract[side], kRagged[side]}) {
      if (key == AttrKey::lhs_ragged_dimensions) named.clear();  // it is one of the others, or free
      if (auto e = dims(key)) return e;
    }
  }
  if (auto e = needPairs(c, kBatch[0], kBatch[1], {}, {})) return e;
  if (auto e = needPairs(c, kContract[0], kContract[1], {}, {})) return e;
  const Type& sizes = c.in(2);
  if (!isInteger(sizes.element) || sizes.rank() < 1)
    return c.fail("sizes of groups are " + c.text(sizes) + ", expected integers");
  if (c.ints(kRagged[0]).size() != 1) return c.fail("expected one ragged dimension of the lhs");
  const int64_t ragged = c.ints(kRagged[0])[0], groups = sizes.dims.back();
  const bool contracted = llvm::is_contained(c.ints(kContract[0]), ragged);
  const bool free = !contracted && !llvm::is_contained(c.ints(kBatch[0]), ragged);
  if (c.ints(kRagged[1]).size() != (free ? 1 : 0))
    return c.fail(free ? "expected one group dimension of the rhs, whose matrices the groups of the lhs meet"
                       : "a group dimension of the rhs goes with a free ragged dimension of the lhs");
  if (free && !compatibleDims({c.in(1).dims[static_cast<size_t>(c.ints(kRagged[1])[0])]}, {groups}))
    return c.fail("the rhs " + c.text(c.in(1)) + " has another number of groups than " + c.text(sizes));
  Dims dims;
  if (contracted) dims.push_back(groups);
  for (int64_t dim : c.ints(kBatch[0])) dims.push_back(c.in(0).dims[static_cast<size_t>(dim)]);
  for (size_t side : {0, 1})
    for (int64_t d = 0; d < c.in(side).rank(); ++d)
      if (!llvm::is_contained(c.ints(kBatch[side]), d) && !llvm::is_contained(c.ints(kContract[side]), d) &&
          !(side == 1 && llvm::is_contained(c.ints(kRagged[1]), d)))
        dims.push_back(c.in(side).dims[static_cast<size_t>(d)]);
  c.yield(resultElement(c), dims);
  return llvm::Error::success();
}

}  // namespace tpu::hlo
