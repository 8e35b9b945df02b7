#include "fold_transposes.h"

#include <algorithm>
#include <numeric>

#include "tpu/hlo/analysis.h"
#include "tpu/hlo/builder.h"
#include "tpu/isa/layout.h"

namespace tpu::lower {
namespace {

using hlo::AttrKey;
using hlo::ValueId;
using Ints = llvm::SmallVector<int64_t, 6>;

struct Side {
  ValueId value;
  Ints batch, contract, free;  // dims of the operand; free in the order of the result
};

Ints permutedDims(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> perm) {
  Ints out;
  for (int64_t d : perm) out.push_back(dims[static_cast<size_t>(d)]);
  return out;
}

// What dims of more than one element do under a permutation.
struct Movement {
  bool identity = true, minor_moves = false;
};
Movement movementOf(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> perm) {
  Ints real;
  for (int64_t d : perm)
    if (dims[static_cast<size_t>(d)] != 1) real.push_back(d);
  Movement m;
  m.identity = std::is_sorted(real.begin(), real.end());
  m.minor_moves = !real.empty() && real.back() != *std::max_element(real.begin(), real.end());
  return m;
}

// Padded bytes that a transpose moves, those that cross lanes counted more: they pass through vector code.
int64_t transposeCost(ElementType type, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> perm) {
  const Movement m = movementOf(dims, perm);
  if (m.identity) return 0;
  const Ints after = permutedDims(dims, perm);
  const int64_t bytes = isa::layoutBytes(isa::defaultLayout(type, dims), type, dims) +
                        isa::layoutBytes(isa::defaultLayout(type, after), type, after);
  return m.minor_moves ? 2 * bytes : bytes;
}

class Folder {
 public:
  Folder(hlo::Module& module, hlo::OpId dot, hlo::OpId transpose) : m(module), dot_(dot), transpose_(transpose) {
    left_ = side(0, AttrKey::lhs_batching_dimensions, AttrKey::lhs_contracting_dimensions);
    right_ = side(1, AttrKey::rhs_batching_dimensions, AttrKey::rhs_contracting_dimensions);
    perm_ = Ints(m.getInts(transpose, AttrKey::permutation));
    result_ = m.typeOf(m.op(dot).results[0]);
  }

  // The new order of the product: batch dims, then the free dims of the side that does not hold the output's minor
  // dimension, then of the other, each as the output has them. `order` holds dims of the old product.
  bool plan() {
    const auto batch = static_cast<int64_t>(left_.batch.size()), left = static_cast<int64_t>(left_.free.size());
    const int64_t minor = minorDim();
    if (minor < batch) return false;
    swap_ = minor < batch + left;
    Ints first, second;
    for (int64_t d : perm_) {
      if (d < batch) continue;
      (d < batch + left ? first : second).push_back(d);
    }
    if (swap_) std::swap(first, second);
    order_.resize(static_cast<size_t>(batch));
    std::iota(order_.begin(), order_.end(), 0);
    order_.append(first.begin(), first.end());
    order_.append(second.begin(), second.end());
    rest_.clear();  // the transpose that is left, over the new product
    for (int64_t d : perm_) rest_.push_back(std::find(order_.begin(), order_.end(), d) - order_.begin());
    return cost(order_, rest_) < cost(identity(), perm_);
  }

  void apply(hlo::Builder& builder, std::vector<ValueId>& replaced) {
    const auto batch = static_cast<int64_t>(left_.batch.size()), left = static_cast<int64_t>(left_.free.size());
    reorder(builder, left_, batch);
    reorder(builder, right_, batch + left);
    if (swap_) {
      std::swap(left_, right_);
      swapStrings(AttrKey::precision_config);
    }
    m.op(dot_).operands = {left_.value, right_.value};
    m.setInts(dot_, AttrKey::lhs_batching_dimensions, left_.batch);
    m.setInts(dot_, AttrKey::rhs_batching_dimensions, right_.batch);
    m.setInts(dot_, AttrKey::lhs_contracting_dimensions, left_.contract);
    m.setInts(dot_, AttrKey::rhs_contracting_dimensions, right_.contract);
    const ValueId product = m.op(dot_).results[0], output = m.op(transpose_).results[0];
    m.value(product).type = m.tensorType(result_.element, permutedDims(result_.dims, order_));
    m.value(product).sharding = {};
    m.setInts(transpose_, AttrKey::permutation, rest_);
    if (!std::is_sorted(rest_.begin(), rest_.end())) return;
    m.value(product).sharding = m.value(output).sharding;
    replaced.resize(m.numValues());
    replaced[output.v] = product;
  }

 private:
  Side side(size_t operand, AttrKey batch, AttrKey contract) const {
    Side s{m.op(dot_).operands[operand], Ints(m.getInts(dot_, batch)), Ints(m.getInts(dot_, contract)), {}};
    for (int64_t d = 0; d < m.typeOf(s.value).rank(); ++d)
      if (!llvm::is_contained(s.batch, d) && !llvm::is_contained(s.contract, d)) s.free.push_back(d);
    return s;
  }
  Ints identity() const {
    Ints out(perm_.size());
    std::iota(out.begin(), out.end(), 0);
    return out;
  }
  int64_t minorDim() const {  // of the output, sizes of 1 aside
    for (size_t i = perm_.size(); i-- > 0;)
      if (result_.dims[static_cast<size_t>(perm_[i])] != 1) return perm_[i];
    return -1;
  }
  // The operand's dims with its free ones in the order that `order` has them from `first` on, the others in place.
  Ints operandOrder(const Side& s, int64_t first, llvm::ArrayRef<int64_t> order) const {
    Ints wanted, perm;
    for (int64_t d : order)
      if (d >= first && d < first + static_cast<int64_t>(s.free.size())) wanted.push_back(s.free[static_cast<size_t>(d - first)]);
    size_t next = 0;
    for (int64_t d = 0; d < m.typeOf(s.value).rank(); ++d) perm.push_back(llvm::is_contained(s.free, d) ? wanted[next++] : d);
    return perm;
  }
  int64_t operandCost(const Side& s, int64_t first, llvm::ArrayRef<int64_t> order) const {
    return transposeCost(m.typeOf(s.value).element, m.typeOf(s.value).dims, operandOrder(s, first, order));
  }
  // Padded bytes: the product written, then transposes.
  int64_t cost(llvm::ArrayRef<int64_t> order, llvm::ArrayRef<int64_t> perm) const {
    const auto batch = static_cast<int64_t>(left_.batch.size()), left = static_cast<int64_t>(left_.free.size());
    const Ints dims = permutedDims(result_.dims, order);
    return isa::layoutBytes(isa::defaultLayout(result_.element, dims), result_.element, dims) + transposeCost(result_.element, dims, perm) +
           operandCost(left_, batch, order) + operandCost(right_, batch + left, order);
  }
  void reorder(hlo::Builder& builder, Side& s, int64_t first) {
    const Ints perm = operandOrder(s, first, order_);
    s.value = builder.transpose(s.value, perm);
  }
  void swapStrings(AttrKey key) {
    const hlo::Attr* attr = m.findAttr(dot_, key);
    if (!attr || attr->strs.size() != 2) return;
    std::vector<std::string> both = {attr->strs[1], attr->strs[0]};
    m.setStrings(dot_, key, both);
  }

  hlo::Module& m;
  hlo::OpId dot_, transpose_;
  Side left_, right_;
  Ints perm_, order_, rest_;
  hlo::Type result_;
  bool swap_ = false;
};

}  // namespace

void foldTransposes(hlo::Module& m) {
  const hlo::Uses uses(m);
  std::vector<std::pair<hlo::OpId, hlo::OpId>> found;
  hlo::walk(m, [&](hlo::OpId id) {
    const hlo::Op& op = m.op(id);
    if (op.opcode != hlo::Opcode::dot_general || m.has(id, AttrKey::algorithm)) return;
    if (!uses.single(op.results[0])) return;
    const hlo::OpId user = uses.of(op.results[0])[0].op;
    if (m.op(user).opcode == hlo::Opcode::transpose && m.op(user).parent == op.parent) found.push_back({id, user});
  });
  std::vector<ValueId> replaced;
  for (auto [dot, transpose] : found) {
    Folder folder(m, dot, transpose);
    if (!folder.plan()) continue;
    std::vector<hlo::OpId>& ops = m.region(m.op(dot).parent).ops;
    hlo::Builder builder(m, m.op(dot).parent, m.op(dot).loc);
    builder.at(m.op(dot).parent, static_cast<size_t>(std::find(ops.begin(), ops.end(), dot) - ops.begin()));
    folder.apply(builder, replaced);
  }
  if (replaced.empty()) return;
  replaced.resize(m.numValues());
  m.replaceUses(replaced);
  hlo::eliminateDeadCode(m);
}

}  // namespace tpu::lower
