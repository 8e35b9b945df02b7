// Elementwise ops become few kernels: an op joins its only consumer kernel when it has the same dims; constants, iotas and
// broadcasts are rebuilt wherever they are read and stand in memory only when something else asks for them.
#include <algorithm>
#include <cassert>

#include "llvm/ADT/DenseSet.h"
#include "lowering.h"

namespace tpu::lower {

using hlo::AttrKey;
using HloOp = hlo::Opcode;

namespace {

// Kernels beyond this many nodes spill more than they save.
int mostNodes(const target::Chip& chip) { return chip.vector_regs >= 32 ? 48 : 12; }

// Arrays that one kernel reads: two slots of the smallest block of each, 16 KiB in the worst mix of types, must fit.
size_t mostInputs(const target::Chip& chip) {
  return static_cast<size_t>(std::clamp<int64_t>(chip.vmem_bytes / (40 << 10), 3, 32));
}

llvm::StringRef shortName(HloOp op) { return hlo::opInfo(op).mnemonic; }

bool rebuilt(HloOp op) { return op == HloOp::constant || op == HloOp::iota || op == HloOp::broadcast_in_dim; }

bool ascending(llvm::ArrayRef<int64_t> d) {
  for (size_t i = 1; i < d.size(); ++i)
    if (d[i] <= d[i - 1]) return false;
  return true;
}

}  // namespace

ExprNode Lowering::opNode(hlo::OpId id, llvm::ArrayRef<int> args) {
  const hlo::Op& op = m_.op(id);
  ExprNode n;
  n.op = op.opcode;
  n.type = typeOf(op.results[0]).element;
  n.args.assign(args.begin(), args.end());
  if (op.opcode == HloOp::compare) {
    n.detail = m_.getString(id, AttrKey::comparison_direction).str();
    if (m_.getString(id, AttrKey::compare_type) == "TOTALORDER") n.detail += ",TOTALORDER";
  }
  if (op.opcode == HloOp::reduce_precision)
    n.detail = std::to_string(m_.getInt(id, AttrKey::exponent_bits)) + "," + std::to_string(m_.getInt(id, AttrKey::mantissa_bits));
  return n;
}

bool Lowering::fusable(hlo::OpId id) const {
  const hlo::Op& op = m_.op(id);
  if (op.results.size() != 1) return false;
  const hlo::Type& t = typeOf(op.results[0]);
  if (t.kind != hlo::TypeKind::kTensor) return false;
  if (op.opcode == HloOp::constant || op.opcode == HloOp::iota) return true;
  if (op.opcode == HloOp::broadcast_in_dim) return ascending(m_.getInts(id, AttrKey::broadcast_dimensions));
  if (!hlo::hasTrait(op.opcode, hlo::kElementwise) && op.opcode != HloOp::bitcast_convert) return false;
  llvm::SmallVector<ElementType, 3> types;
  for (hlo::ValueId v : op.operands) types.push_back(typeOf(v).element);
  ExprNode n;
  n.op = op.opcode;
  n.type = t.element;
  return canEmit(n, types);
}

// Decides, from the last op to the first, which ops are computed inside the kernel of their consumer.
void Lowering::planFusion(hlo::RegionId region) {
  const hlo::Region& r = m_.region(region);
  llvm::DenseMap<uint32_t, llvm::SmallVector<hlo::OpId, 2>> users;  // value -> users, those of nested regions included
  llvm::SmallVector<hlo::RegionId, 4> open = {region};
  while (!open.empty()) {
    hlo::RegionId at = open.pop_back_val();
    for (hlo::OpId id : m_.region(at).ops) {
      for (hlo::ValueId v : m_.op(id).operands) users[v.v].push_back(id);
      open.append(m_.op(id).regions.begin(), m_.op(id).regions.end());
    }
  }
  auto iterationDims = [&](hlo::OpId id) {
    const hlo::Op& op = m_.op(id);
    return llvm::ArrayRef<int64_t>(op.opcode == HloOp::reduce ? typeOf(op.operands[0]).dims : typeOf(op.results[0]).dims);
  };
  // What the kernel of a root op reads, as far as joined: arrays that nothing rebuilds in place.
  llvm::DenseMap<uint32_t, llvm::SmallDenseSet<uint32_t, 8>> read;
  auto addReads = [&](llvm::SmallDenseSet<uint32_t, 8>& to, hlo::OpId id) {
    for (hlo::ValueId v : m_.op(id).operands) {
      hlo::OpId def = m_.value(v).def;
      while (def.valid() && m_.op(def).opcode == HloOp::broadcast_in_dim && !isScalar(v)) {
        v = m_.op(def).operands[0];
        def = m_.value(v).def;
      }
      const bool free = def.valid() && (m_.op(def).opcode == HloOp::constant || m_.op(def).opcode == HloOp::iota);
      if (!free && !isScalar(v)) to.insert(v.v);
    }
  };
  llvm::DenseMap<uint32_t, int> nodes;
  for (auto it = r.ops.rbegin(); it != r.ops.rend(); ++it) {
    hlo::OpId id = *it;
    cluster_of_[id.v] = id;
    addReads(read[id.v], id);
    if (!fusable(id) || rebuilt(m_.op(id).opcode) || driverScalar(id)) continue;
    hlo::OpId target;
    bool joins = !users[m_.op(id).results[0].v].empty();
    for (hlo::OpId user : users[m_.op(id).results[0].v]) {
      const hlo::Op& u = m_.op(user);
      bool takes = u.parent == region && ((fusable(user) && !rebuilt(u.opcode) && !driverScalar(user)) || u.opcode == HloOp::reduce);
      if (u.opcode == HloOp::reduce)  // the values to reduce, not the init values
        for (size_t k = u.operands.size() / 2; k < u.operands.size(); ++k) takes = takes && u.operands[k] != m_.op(id).results[0];
      hlo::OpId c = takes ? cluster_of_[user.v] : hlo::OpId();
      if (!takes || (target.valid() && target != c) || iterationDims(c) != llvm::ArrayRef<int64_t>(typeOf(m_.op(id).results[0]).dims)) {
        joins = false;
        break;
      }
      target = c;
    }
    if (!joins || nodes[target.v] >= mostNodes(target_.chip)) continue;
    llvm::SmallDenseSet<uint32_t, 8> together = read[target.v];
    together.erase(m_.op(id).results[0].v);
    addReads(together, id);
    if (together.size() > mostInputs(target_.chip)) continue;
    read[target.v] = std::move(together);
    ++nodes[target.v];
    cluster_of_[id.v] = target;
  }
}

bool Lowering::isRoot(hlo::OpId id) const { return cluster_of_[id.v] == id && !rebuilt(m_.op(id).opcode); }

int Lowering::clusterInput(Cluster& c, hlo::ValueId v, llvm::ArrayRef<int64_t> dims) {
  bool one = typeOf(v).dims.empty();
  for (size_t i = 0; i < c.inputs.size(); ++i)
    if (root(c.inputs[i]) == root(v) && (one ? c.spec.inputs[i].scalar : llvm::ArrayRef<int64_t>(c.spec.inputs[i].dims) == dims)) return static_cast<int>(i);
  InputSpec in;
  in.type = typeOf(v).element;
  in.scalar = one;
  if (!one) in.dims.assign(dims.begin(), dims.end());
  c.spec.inputs.push_back(in);
  c.inputs.push_back(v);
  return static_cast<int>(c.inputs.size() - 1);
}

// The node that computes v seen under `dims`: v's own dims with ones put in, broadcast to the shape.
llvm::Expected<int> Lowering::clusterNode(Cluster& c, hlo::ValueId v, llvm::ArrayRef<int64_t> dims) {
  const hlo::Type& t = typeOf(v);
  std::pair<uint32_t, std::vector<int64_t>> key{v.v, {dims.begin(), dims.end()}};
  if (auto it = c.node_of.find(key); it != c.node_of.end()) return it->second;
  auto add = [&](ExprNode n) {
    c.spec.nodes.push_back(std::move(n));
    int id = static_cast<int>(c.spec.nodes.size() - 1);
    c.node_of[key] = id;
    return id;
  };
  hlo::OpId def = m_.value(v).def;
  if (auto splat = splatBytes(v)) {
    ExprNode n;
    n.kind = ExprNode::kConstant;
    n.type = t.element;
    for (size_t i = 0; i < splat->size() && i < 8; ++i) n.bits |= static_cast<uint64_t>((*splat)[i]) << (8 * i);
    return add(n);
  }
  bool inside = def.valid() && m_.op(def).opcode != HloOp::constant && fusable(def) && !isRoot(def);
  // Which position of `dims` each dimension of v takes; ones have none.
  llvm::SmallVector<int, 6> pos(t.dims.size(), -1);
  if (inside) {
    size_t at = 0;
    for (size_t i = 0; i < t.dims.size(); ++i) {
      if (t.dims[i] == 1) continue;
      while (at < dims.size() && dims[at] != t.dims[i]) ++at;
      assert(at < dims.size() && "view does not hold the value's dims");
      pos[i] = static_cast<int>(at++);
    }
  }
  if (inside && m_.op(def).opcode == HloOp::iota) {
    ExprNode n;
    int d = pos[m_.getInt(def, AttrKey::iota_dimension)];
    n.kind = d < 0 ? ExprNode::kConstant : ExprNode::kIota;
    n.type = t.element;
    n.index = d < 0 ? 0 : d;
    return add(n);
  }
  if (inside && m_.op(def).opcode == HloOp::broadcast_in_dim) {
    hlo::ValueId x = m_.op(def).operands[0];
    llvm::ArrayRef<int64_t> map = m_.getInts(def, AttrKey::broadcast_dimensions);
    if (typeOf(x).dims.empty()) return clusterNode(c, x, {});
    Dims xd(dims.size(), 1);
    for (size_t i = 0; i < map.size(); ++i)
      if (typeOf(x).dims[i] != 1) xd[pos[map[i]]] = typeOf(x).dims[i];
    return clusterNode(c, x, xd);
  }
  if (inside) {
    llvm::SmallVector<int, 3> args;
    for (hlo::ValueId a : m_.op(def).operands) {
      auto n = clusterNode(c, a, typeOf(a).dims.empty() ? llvm::ArrayRef<int64_t>() : dims);
      if (!n) return n.takeError();
      args.push_back(*n);
    }
    ExprNode n = opNode(def, args);
    n.op_slot = static_cast<uint32_t>(c.slots.size());
    c.slots.push_back(internLoc(locOf(def)));
    return add(n);
  }
  ExprNode n;
  n.kind = ExprNode::kInput;
  n.type = t.element;
  n.index = clusterInput(c, v, dims);
  return add(n);
}

llvm::Expected<std::vector<int32_t>> Lowering::clusterInputs(const Cluster& c) {
  std::vector<int32_t> buffers;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    auto id = c.spec.inputs[i].scalar ? scalar(c.inputs[i]) : form(c.inputs[i], c.spec.inputs[i].dims);
    if (!id) return id.takeError();
    buffers.push_back(*id);
  }
  return buffers;
}

llvm::Error Lowering::lowerElementwise(hlo::OpId id) {
  const hlo::Op& op = m_.op(id);
  hlo::ValueId v = op.results[0];
  Dims dims(typeOf(v).dims.begin(), typeOf(v).dims.end());
  Cluster c;
  c.spec.shape = dims;
  c.slots.push_back(internLoc(locOf(id)));
  // The root itself is never an input of its own kernel.
  hlo::OpId keep = cluster_of_[id.v];
  cluster_of_[id.v] = hlo::OpId();
  auto node = clusterNode(c, v, dims);
  cluster_of_[id.v] = keep;
  if (!node) return node.takeError();
  c.spec.outputs.push_back(*node);
  auto inputs = clusterInputs(c);
  if (!inputs) return inputs.takeError();
  auto kernel = loopKernel(c.spec, shortName(op.opcode));
  if (!kernel) return kernel.takeError();
  int32_t out = resultBuffer(v, dims);
  inputs->push_back(out);
  callKernel(*kernel, *inputs, c.slots);
  addForm(v, out, dims);
  return llvm::Error::success();
}

llvm::Error Lowering::lowerConstant(hlo::OpId id) {
  hlo::ValueId v = m_.op(id).results[0];
  const hlo::Type& t = typeOf(v);
  const hlo::Literal& lit = m_.literal(m_.findAttr(id, AttrKey::value)->literal);
  int64_t n = t.numElements(), width = hostBytes(t.element);
  constexpr int64_t kMostSplat = 1 << 20;
  if (!t.dims.empty() && lit.splat && n > kMostSplat) return lowerElementwise(id);
  std::vector<uint8_t> host(lit.bytes);
  if (lit.splat) {
    host.resize(static_cast<size_t>(n * width));
    for (int64_t i = 1; i < n; ++i) std::copy(lit.bytes.begin(), lit.bytes.begin() + width, host.begin() + i * width);
  }
  int32_t buffer = t.dims.empty() ? scalarBuffer(t.element) : tempBuffer(t.element, t.dims);
  llo::Buffer& b = out_.buffers[buffer];
  b.role = llo::Role::kConstant;
  b.loc = internLoc(locOf(id));
  b.data.assign(static_cast<size_t>(b.bytes), 0);
  isa::packHost(b.layout, t.element, t.dims, host.data(), b.data.data());
  // Constants are loaded before the run: their forms hold everywhere.
  if (t.dims.empty()) scalars_[v.v] = buffer;
  else forms_[v.v].insert(forms_[v.v].begin(), Form{buffer, Dims(t.dims.begin(), t.dims.end())});
  return llvm::Error::success();
}

// The ops of a combiner region over its arguments, which are the first nodes.
llvm::Expected<std::vector<int>> Lowering::regionExpr(hlo::RegionId region, std::vector<ExprNode>& nodes) {
  const hlo::Region& r = m_.region(region);
  llvm::DenseMap<uint32_t, int> node_of;
  for (size_t i = 0; i < r.args.size(); ++i) {
    ExprNode n;
    n.kind = ExprNode::kInput;
    n.type = typeOf(r.args[i]).element;
    n.index = static_cast<int>(i);
    node_of[r.args[i].v] = static_cast<int>(nodes.size());
    nodes.push_back(n);
  }
  auto find = [&](hlo::ValueId v, hlo::OpId user) -> llvm::Expected<int> {
    if (auto it = node_of.find(root(v).v); it != node_of.end()) return it->second;
    auto splat = splatBytes(v);
    if (!splat) return refuse(user, "a region that reads values from outside is not lowered");
    ExprNode n;
    n.kind = ExprNode::kConstant;
    n.type = typeOf(v).element;
    for (size_t i = 0; i < splat->size() && i < 8; ++i) n.bits |= static_cast<uint64_t>((*splat)[i]) << (8 * i);
    nodes.push_back(n);
    return node_of[root(v).v] = static_cast<int>(nodes.size() - 1);
  };
  for (hlo::OpId id : r.ops) {
    const hlo::Op& op = m_.op(id);
    llvm::SmallVector<int, 3> args;
    if (op.opcode == HloOp::constant) continue;
    if (op.results.size() == 1 && root(op.results[0]) != op.results[0]) continue;  // reshape, sharding_constraint
    if (op.opcode != HloOp::return_ && !fusable(id)) return refuse(id, "inside a reducer");
    for (hlo::ValueId v : op.operands) {
      auto n = find(v, id);
      if (!n) return n.takeError();
      args.push_back(*n);
    }
    if (op.opcode == HloOp::return_) return std::vector<int>(args.begin(), args.end());
    if (op.opcode == HloOp::broadcast_in_dim) {
      node_of[op.results[0].v] = args[0];
      continue;
    }
    node_of[op.results[0].v] = static_cast<int>(nodes.size());
    nodes.push_back(opNode(id, args));
  }
  return std::vector<int>();
}

// Nothing to fold: the init values themselves.
llvm::Error Lowering::lowerEmptyReduce(hlo::OpId id) {
  const hlo::Op& op = m_.op(id);
  for (size_t i = 0; i < op.results.size(); ++i) {
    Dims dims(typeOf(op.results[i]).dims.begin(), typeOf(op.results[i]).dims.end());
    Cluster c;
    c.spec.shape = dims;
    c.slots.push_back(internLoc(locOf(id)));
    auto node = clusterNode(c, op.operands[op.results.size() + i], {});
    if (!node) return node.takeError();
    c.spec.outputs.push_back(*node);
    auto inputs = clusterInputs(c);
    if (!inputs) return inputs.takeError();
    auto kernel = loopKernel(c.spec, "fill");
    if (!kernel) return kernel.takeError();
    int32_t out = resultBuffer(op.results[i], dims);
    inputs->push_back(out);
    callKernel(*kernel, *inputs, c.slots);
    addForm(op.results[i], out, dims);
  }
  return llvm::Error::success();
}

llvm::Error Lowering::lowerReduce(hlo::OpId id) {
  const hlo::Op& op = m_.op(id);
  size_t n = op.operands.size() / 2;
  ReduceSpec spec;
  Cluster c;
  Dims dims(typeOf(op.operands[0]).dims.begin(), typeOf(op.operands[0]).dims.end());
  if (typeOf(op.operands[0]).numElements() == 0) return lowerEmptyReduce(id);
  c.spec.shape = dims;
  c.slots.push_back(internLoc(locOf(id)));
  for (size_t i = 0; i < n; ++i) {
    auto node = clusterNode(c, op.operands[i], dims);
    if (!node) return node.takeError();
    c.spec.outputs.push_back(*node);
    uint64_t bits = 0;
    auto init = splatBytes(op.operands[n + i]);
    for (size_t k = 0; init && k < init->size() && k < 8; ++k) bits |= static_cast<uint64_t>((*init)[k]) << (8 * k);
    spec.init_bits.push_back(bits);
    spec.init_inputs.push_back(init ? -1 : clusterInput(c, op.operands[n + i], {}));
  }
  spec.producer = c.spec;
  spec.reduced.assign(dims.size(), false);
  for (int64_t d : m_.getInts(id, AttrKey::dimensions)) spec.reduced[d] = true;
  auto combined = regionExpr(op.regions[0], spec.combiner);
  if (!combined) return combined.takeError();
  spec.combined = *combined;
  auto inputs = clusterInputs(c);
  if (!inputs) return inputs.takeError();
  return reduceBuffers(id, std::move(spec), std::move(*inputs), c.slots);
}

// A combiner that does not commute takes one dimension at a time, the last one first.
llvm::Error Lowering::reduceBuffers(hlo::OpId id, ReduceSpec spec, std::vector<int32_t> inputs, llvm::ArrayRef<uint32_t> slots) {
  const hlo::Op& op = m_.op(id);
  const size_t n = spec.producer.outputs.size();
  const auto last = [&] {
    size_t d = spec.reduced.size();
    while (d > 0 && !(spec.reduced[d - 1] && spec.producer.shape[d - 1] > 1)) --d;
    return d;
  };
  for (bool done = false; !done;) {
    llvm::SmallVector<bool, 6> left(spec.reduced.size(), false);
    if (const size_t d = last(); d > 0 && !commutes(spec)) {
      std::swap(left, spec.reduced);
      spec.reduced[d - 1] = true;
      left[d - 1] = false;
      for (size_t i = 0; i < left.size(); ++i) left[i] &= spec.producer.shape[i] > 1;
    }
    auto kernel = kernelFor(spec, "reduce", &emitReduce);
    if (!kernel) return kernel.takeError();
    Dims kept(spec.producer.shape.begin(), spec.producer.shape.end());
    for (size_t d = 0; d < kept.size(); ++d)
      if (spec.reduced[d]) kept[d] = 1;
    spec.reduced = left;
    done = std::none_of(left.begin(), left.end(), [](bool x) { return x; });
    llvm::SmallVector<int32_t, 2> outs;
    for (size_t i = 0; i < n; ++i) {
      const hlo::Type& t = typeOf(op.results[i]);
      const bool same = done && !t.dims.empty() && sameBytes(t.element, kept, t.dims);
      outs.push_back(same ? resultBuffer(op.results[i], t.dims) : tempBuffer(t.element, kept));
    }
    std::vector<int32_t> buffers = inputs;
    buffers.insert(buffers.end(), outs.begin(), outs.end());
    callKernel(*kernel, buffers, slots);
    if (done) {
      for (size_t i = 0; i < n; ++i) addForm(op.results[i], outs[i], kept);
      break;
    }
    readPartial(op, kept, outs, spec, inputs);
  }
  return llvm::Error::success();
}

// What is left to reduce reads the values that `outs` hold, and the init values as before.
void Lowering::readPartial(const hlo::Op& op, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int32_t> outs, ReduceSpec& spec,
                           std::vector<int32_t>& inputs) {
  LoopSpec next;
  next.shape.assign(dims.begin(), dims.end());
  std::vector<int32_t> buffers(outs.begin(), outs.end());
  for (size_t i = 0; i < outs.size(); ++i) {
    InputSpec in;
    in.type = typeOf(op.results[i]).element;
    in.dims = next.shape;
    next.inputs.push_back(in);
    ExprNode node;
    node.kind = ExprNode::kInput;
    node.type = in.type;
    node.index = static_cast<int>(i);
    next.nodes.push_back(node);
    next.outputs.push_back(static_cast<int>(i));
  }
  for (int& init : spec.init_inputs) {
    if (init < 0) continue;
    next.inputs.push_back(spec.producer.inputs[init]);
    buffers.push_back(inputs[init]);
    init = static_cast<int>(next.inputs.size()) - 1;
  }
  spec.producer = std::move(next);
  inputs = std::move(buffers);
}

}  // namespace tpu::lower
