// What a combiner's expression says about the order of its operands.
//
// It commutes where exchanging the two sides leaves it as it is, up to the order of operands of ops that commute
// themselves. A choice of one of the two sides (argmax and the like) that is associative ranks the elements, and among
// equals takes always the first or always the last one: where the elements carry their position along the reduced
// dimension, any two sets of them can be combined, as long as the one that stands first is the left operand.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "tpu/lower/spec.h"

namespace tpu::lower {
namespace {

bool orderless(const ExprNode& n) {
  using hlo::Opcode;
  switch (n.op) {
    case Opcode::add: case Opcode::multiply: case Opcode::maximum: case Opcode::minimum: case Opcode::and_:
    case Opcode::or_: case Opcode::xor_: return true;
    case Opcode::compare: return n.detail == "EQ" || n.detail == "NE";
    default: return false;
  }
}

// Numbers expressions so that equal ones have equal numbers.
class Numbering {
 public:
  explicit Numbering(const ReduceSpec& spec) : spec_(spec) {}

  // Numbers of all nodes, with the accumulator's and the element's inputs exchanged where `exchanged`.
  std::vector<int> run(bool exchanged) {
    const int values = static_cast<int>(spec_.combined.size());
    std::vector<int> of;
    for (const ExprNode& n : spec_.combiner) {
      Key key{static_cast<int>(n.kind), static_cast<int>(n.type), static_cast<int>(n.op), n.index, n.bits, n.detail, {}};
      if (n.kind == ExprNode::kInput && exchanged) key.index = (n.index + values) % (2 * values);
      for (int a : n.args) key.args.push_back(of[a]);
      if (n.kind == ExprNode::kOp && orderless(n)) std::sort(key.args.begin(), key.args.end());
      if (n.kind == ExprNode::kOp && n.op == hlo::Opcode::compare && (n.detail == "GT" || n.detail == "GE")) {
        key.detail = n.detail == "GT" ? "LT" : "LE";
        std::swap(key.args[0], key.args[1]);
      }
      of.push_back(numbers_.try_emplace(key, static_cast<int>(numbers_.size())).first->second);
    }
    return of;
  }

 private:
  struct Key {
    int kind, type, op, index;
    uint64_t bits;
    std::string detail;
    std::vector<int> args;
    bool operator<(const Key& o) const {
      return std::tie(kind, type, op, index, bits, detail, args) <
             std::tie(o.kind, o.type, o.op, o.index, o.bits, o.detail, o.args);
    }
  };
  const ReduceSpec& spec_;
  std::map<Key, int> numbers_;
};

const ExprNode* opOf(llvm::ArrayRef<ExprNode> nodes, int n, hlo::Opcode op) {
  return nodes[n].kind == ExprNode::kOp && nodes[n].op == op ? &nodes[n] : nullptr;
}

// Whether all values are taken from the same side, but for values that are equal on both.
bool choosesASide(const ReduceSpec& spec) {
  const int values = static_cast<int>(spec.combined.size());
  const std::vector<int> number = Numbering(spec).run(false);
  const auto isInput = [&](int node, int index) {
    return spec.combiner[node].kind == ExprNode::kInput && spec.combiner[node].index == index;
  };
  int first = -1;  // the condition of value 0
  for (int v = 0; v < values; ++v) {
    const ExprNode* n = opOf(spec.combiner, spec.combined[v], hlo::Opcode::select);
    if (!n || !isInput(n->args[1], v) || !isInput(n->args[2], v + values)) return false;
    if (v == 0) first = n->args[0];
    if (number[n->args[0]] == number[first]) continue;
    // As JAX writes it: or(first, and(equal values, anything)).
    const ExprNode* either = opOf(spec.combiner, n->args[0], hlo::Opcode::or_);
    if (!either || number[either->args[0]] != number[first]) return false;
    const ExprNode* tie = opOf(spec.combiner, either->args[1], hlo::Opcode::and_);
    const ExprNode* equal = tie ? opOf(spec.combiner, tie->args[0], hlo::Opcode::compare) : nullptr;
    if (values != 2 || !equal || equal->detail != "EQ" || !isInput(equal->args[0], 0) || !isInput(equal->args[1], values))
      return false;
  }
  return true;
}

// Whether a node numbers the elements along dimension d, from any start.
bool numbersAlong(const LoopSpec& spec, int node, int d) {
  const ExprNode& n = spec.nodes[node];
  if (!isInteger(n.type) || elementBits(n.type) != 32) return false;
  if (n.kind == ExprNode::kIota) return n.index == d;
  if (n.kind != ExprNode::kOp || n.op != hlo::Opcode::add) return false;
  const auto isStart = [&](int i) {
    const ExprNode& x = spec.nodes[i];
    return x.kind == ExprNode::kConstant || (x.kind == ExprNode::kInput && spec.inputs[x.index].scalar);
  };
  return (isStart(n.args[0]) && numbersAlong(spec, n.args[1], d)) || (isStart(n.args[1]) && numbersAlong(spec, n.args[0], d));
}

}  // namespace

int positionValue(const ReduceSpec& spec) {
  int dim = -1;
  for (size_t d = 0; d < spec.reduced.size(); ++d) {
    if (!spec.reduced[d] || spec.producer.shape[d] == 1) continue;
    if (dim >= 0) return -1;
    dim = static_cast<int>(d);
  }
  if (dim < 0 || !choosesASide(spec)) return -1;
  for (size_t v = 0; v < spec.producer.outputs.size(); ++v)
    if (numbersAlong(spec.producer, spec.producer.outputs[v], dim)) return static_cast<int>(v);
  return -1;
}

bool commutes(const ReduceSpec& spec) {
  Numbering numbering(spec);
  const std::vector<int> as_written = numbering.run(false), exchanged = numbering.run(true);
  return std::all_of(spec.combined.begin(), spec.combined.end(), [&](int n) { return as_written[n] == exchanged[n]; });
}

}  // namespace tpu::lower
