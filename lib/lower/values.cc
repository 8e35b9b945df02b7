// Where values stand: ports, buffers, forms, scalars, and the cache of kernels.
#include <cassert>

#include "lowering.h"

namespace tpu::lower {

bool supportedType(ElementType t) {
  switch (t) {
    case ElementType::kF32: case ElementType::kBF16: case ElementType::kS32: case ElementType::kU32:
    case ElementType::kS8: case ElementType::kU8: case ElementType::kPred: return true;
    default: return false;
  }
}

namespace {

// The dims other than 1 keep their order: a view of the same elements.
bool keepsOrder(const hlo::Module& m, hlo::OpId id) {
  const hlo::Op& op = m.op(id);
  const hlo::Type &in = m.typeOf(op.operands[0]), &out = m.typeOf(op.results[0]);
  bool transposes = op.opcode == hlo::Opcode::transpose;
  if (in.numElements() != out.numElements() || in.dims.empty()) return false;
  int64_t last = -1;
  for (int64_t d : m.getInts(id, transposes ? hlo::AttrKey::permutation : hlo::AttrKey::broadcast_dimensions)) {
    if ((transposes ? in : out).dims[d] == 1) continue;
    if (d <= last) return false;
    last = d;
  }
  return true;
}

// Ops whose result is the same sequence of elements as one operand: no code, shared forms.
int aliasedOperand(const hlo::Module& m, hlo::OpId id, uint32_t result) {
  const hlo::Op& op = m.op(id);
  switch (op.opcode) {
    case hlo::Opcode::reshape: case hlo::Opcode::sdy_sharding_constraint: case hlo::Opcode::sdy_propagation_barrier: return 0;
    case hlo::Opcode::broadcast_in_dim: case hlo::Opcode::transpose: return keepsOrder(m, id) ? 0 : -1;
    case hlo::Opcode::optimization_barrier: return static_cast<int>(result);
    default: return -1;
  }
}

std::vector<llvm::SmallVector<isa::ShardFactor, 2>> shardFactors(const hlo::Module& m, hlo::ShardingId id, size_t rank) {
  std::vector<llvm::SmallVector<isa::ShardFactor, 2>> out(rank);
  if (!id.valid()) return out;
  const hlo::Sharding& s = m.sharding(id);
  const hlo::Mesh& mesh = m.meshes[s.mesh.v];
  for (size_t d = 0; d < rank && d < s.dims.size(); ++d)
    for (const hlo::AxisRef& a : s.dims[d].axes) {
      int64_t stride = 1;
      for (size_t k = a.axis + 1; k < mesh.axes.size(); ++k) stride *= mesh.axes[k].size;
      int64_t post = mesh.axes[a.axis].size / (a.pre * a.size);
      out[d].push_back({stride * post, a.size});
    }
  return out;
}

}  // namespace

Lowering::Lowering(hlo::Module& module, const target::Target& target, const LowerOptions& options, DiagnosticSink& sink)
    : m_(module), target_(target), options_(options), sink_(sink), b_(out_.driver) {
  out_.locs.push_back("");
  loc_ids_[""] = 0;
}

uint32_t Lowering::internLoc(llvm::StringRef text) {
  auto [it, fresh] = loc_ids_.try_emplace(text, static_cast<uint32_t>(out_.locs.size()));
  if (fresh) out_.locs.push_back(text.str());
  return it->second;
}

hlo::ValueId Lowering::root(hlo::ValueId v) const { return root_[v.v]; }

void Lowering::prepareRoots() {
  root_.resize(m_.numValues());
  for (uint32_t v = 0; v < root_.size(); ++v) {
    hlo::ValueId at(v);
    // Definitions come before uses, but row order need not follow: chase the chain.
    for (;;) {
      const hlo::Value& value = m_.value(at);
      if (!value.def.valid() || !m_.op(value.def).parent.valid()) break;
      int operand = aliasedOperand(m_, value.def, value.index);
      if (operand < 0) break;
      at = m_.op(value.def).operands[operand];
    }
    root_[v] = at;
  }
  uses_.assign(root_.size(), 0);
  for (uint32_t i = 0; i < m_.numOps(); ++i) {
    const hlo::Op& op = m_.op(hlo::OpId(i));
    if (!op.parent.valid() || aliasedOperand(m_, hlo::OpId(i), 0) >= 0) continue;
    for (hlo::ValueId v : op.operands) ++uses_[root(v).v];
  }
  forms_.resize(root_.size());
  scalars_.assign(root_.size(), -1);
  result_of_.assign(root_.size(), -1);
  cluster_of_.resize(m_.numOps());
}

int32_t Lowering::addBuffer(llo::Buffer b) {
  out_.buffers.push_back(std::move(b));
  return static_cast<int32_t>(out_.buffers.size() - 1);
}

int32_t Lowering::tempBuffer(ElementType type, llvm::ArrayRef<int64_t> dims, bool dense) {
  llo::Buffer b;
  b.element = type;
  b.dims.assign(dims.begin(), dims.end());
  b.layout = isa::defaultLayout(type, dims);
  b.layout.dense = dense;
  int64_t elements = 1;
  for (int64_t d : dims) elements *= d;
  b.real_bytes = (elements * elementBits(type) + 7) / 8;
  b.bytes = dense ? (elements * 4 + 511) / 512 * 512 : isa::layoutBytes(b.layout, type, dims);
  return addBuffer(std::move(b));
}

int32_t Lowering::scalarBuffer(ElementType type) {
  llo::Buffer b;
  b.space = isa::Space::kSmem;
  b.element = type;
  b.layout = isa::defaultLayout(type, {});
  b.bytes = 4;
  b.real_bytes = (elementBits(type) + 7) / 8;
  return addBuffer(std::move(b));
}

llvm::Error Lowering::declarePorts() {
  const hlo::Func& f = m_.func(m_.entry);
  const hlo::Region& body = m_.region(f.body);
  auto declare = [&](llo::Role role, int i, hlo::TypeId local_id, const hlo::Port* port, llvm::StringRef loc) -> llvm::Expected<int32_t> {
    const hlo::Type& local = m_.type(local_id);
    if (local.kind != hlo::TypeKind::kTensor || !supportedType(local.element))
      return fail(Code::kLowerType, loc, "an argument or result of type " + elementTypeName(local.element) + " is not lowered to the machine");
    int32_t id = local.dims.empty() ? scalarBuffer(local.element) : tempBuffer(local.element, local.dims);
    llo::Buffer& b = out_.buffers[id];
    b.role = role;
    b.port = i;
    b.loc = internLoc(loc);
    llo::Port p;
    p.name = port && port->name.valid() ? m_.string(port->name).str() : (role == llo::Role::kArgument ? "arg" : "result") + std::to_string(i);
    b.name = p.name;
    p.buffer = id;
    p.signature.name = p.name;
    p.signature.element = local.element;
    p.signature.local_dims.assign(local.dims.begin(), local.dims.end());
    const hlo::Type& global = port && port->global_type.valid() ? m_.type(port->global_type) : local;
    p.signature.global_dims.assign(global.dims.begin(), global.dims.end());
    p.signature.shards = shardFactors(m_, port ? port->sharding : hlo::ShardingId(), local.dims.size());
    p.signature.layout = b.layout;
    p.signature.space = b.space;
    p.signature.loc = loc.str();
    p.signature.alias = role == llo::Role::kArgument && port ? port->alias : -1;
    out_.required_hbm_bytes += b.real_bytes;
    (role == llo::Role::kArgument ? out_.args : out_.results).push_back(std::move(p));
    return id;
  };
  for (size_t i = 0; i < body.args.size(); ++i) {
    hlo::ValueId v = body.args[i];
    auto id = declare(llo::Role::kArgument, static_cast<int>(i), m_.value(v).type, i < f.arg_ports.size() ? &f.arg_ports[i] : nullptr, m_.loc(m_.value(v).loc));
    if (!id) return id.takeError();
    if (isScalar(v)) scalars_[v.v] = *id;
    else forms_[v.v].push_back({*id, Dims(typeOf(v).dims.begin(), typeOf(v).dims.end())});
  }
  for (size_t i = 0; i < f.result_types.size(); ++i) {
    hlo::ValueId v = m_.op(body.ops.back()).operands[i];
    hlo::ValueId r = root(v);
    auto id = declare(llo::Role::kResult, static_cast<int>(i), f.result_types[i], i < f.result_ports.size() ? &f.result_ports[i] : nullptr, m_.loc(m_.op(body.ops.back()).loc));
    if (!id) return id.takeError();
    result_buffers_.push_back(*id);
    const hlo::Value& value = m_.value(r);
    bool in_entry = value.def.valid() && m_.op(value.def).parent == f.body;
    if (in_entry && result_of_[r.v] < 0 && typeOf(v).dims == typeOf(r).dims) result_of_[r.v] = static_cast<int>(i);
  }
  return llvm::Error::success();
}

int32_t Lowering::resultBuffer(hlo::ValueId v, llvm::ArrayRef<int64_t> dims) {
  hlo::ValueId r = root(v);
  const hlo::Type& t = typeOf(v);
  int result = result_of_[r.v];
  if (result >= 0 && !dims.empty() && dims == llvm::ArrayRef<int64_t>(typeOf(r).dims)) return result_buffers_[result];
  int32_t id = dims.empty() ? scalarBuffer(t.element) : tempBuffer(t.element, dims);
  out_.buffers[id].loc = m_.value(v).def.valid() ? internLoc(locOf(m_.value(v).def)) : 0;
  return id;
}

void Lowering::addForm(hlo::ValueId v, int32_t buffer, llvm::ArrayRef<int64_t> dims) {
  hlo::ValueId r = root(v);
  if (dims.empty()) {
    scalars_[r.v] = buffer;
    form_log_.push_back({r.v, true});
    return;
  }
  forms_[r.v].push_back({buffer, Dims(dims.begin(), dims.end())});
  form_log_.push_back({r.v, false});
}

void Lowering::endScope(size_t mark) {
  while (form_log_.size() > mark) {
    auto [v, scalar] = form_log_.back();
    form_log_.pop_back();
    if (scalar) scalars_[v] = -1;
    else forms_[v].pop_back();
  }
}

bool Lowering::sameBytes(ElementType type, llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) const {
  struct View {
    int64_t outer, rows, cols;
    int tr;
  };
  auto view = [&](llvm::ArrayRef<int64_t> d) {
    View v{1, 1, d.back(), isa::defaultLayout(type, d).tile_rows};
    if (d.size() > 1) v.rows = d[d.size() - 2];
    for (size_t i = 0; i + 2 < d.size(); ++i) v.outer *= d[i];
    if (v.rows % v.tr == 0) {
      v.rows *= v.outer;
      v.outer = 1;
    }
    return v;
  };
  if (a.empty() || b.empty()) return a.empty() && b.empty();
  View x = view(a), y = view(b);
  return x.outer == y.outer && x.rows == y.rows && x.cols == y.cols && x.tr == y.tr;
}

llvm::Expected<int32_t> Lowering::form(hlo::ValueId v, llvm::ArrayRef<int64_t> dims) {
  hlo::ValueId r = root(v);
  ElementType type = typeOf(v).element;
  auto find = [&]() -> int32_t {
    for (const Form& f : forms_[r.v])
      if (llvm::ArrayRef<int64_t>(f.dims) == dims || sameBytes(type, f.dims, dims)) return f.buffer;
    return -1;
  };
  if (int32_t id = find(); id >= 0) return id;
  if (typeOf(v).numElements() == 0) {
    int32_t nothing = tempBuffer(type, dims);
    addForm(r, nothing, dims);
    return nothing;
  }
  if (forms_[r.v].empty() && scalars_[r.v] < 0) {
    hlo::OpId def = m_.value(r).def;
    if (!def.valid() || !fusable(def))
      return fail(Code::kInternalError, "", "a value has no buffer: " + (def.valid() ? hlo::opInfo(m_.op(def).opcode).name : llvm::StringRef("region argument")));
    if (auto err = m_.op(def).opcode == hlo::Opcode::constant ? lowerConstant(def) : lowerElementwise(def)) return err;
    if (int32_t id = find(); id >= 0) return id;
  }
  int32_t made = tempBuffer(type, dims);
  if (forms_[r.v].empty()) {  // a scalar as an array of one element
    llo::Dma d;
    d.src.index = scalars_[r.v];
    d.dst.index = made;
    d.run = 4;
    d.dst_sem = local_sem_;
    b_.dma(std::move(d));
    b_.semWait(local_sem_, {false, 0, 4});
  } else {
    Form from = forms_[r.v].front();
    if (auto err = relayout(from.buffer, from.dims, made, dims)) return err;
  }
  addForm(r, made, dims);
  return made;
}

llvm::Expected<int32_t> Lowering::scalar(hlo::ValueId v) {
  hlo::ValueId r = root(v);
  if (scalars_[r.v] >= 0) return scalars_[r.v];
  hlo::OpId def = m_.value(r).def;
  if (forms_[r.v].empty() && def.valid() && fusable(def)) {
    if (auto err = m_.op(def).opcode == hlo::Opcode::constant ? lowerConstant(def) : lowerElementwise(def)) return err;
    if (scalars_[r.v] >= 0) return scalars_[r.v];
  }
  assert(!forms_[r.v].empty() && "a scalar without a buffer");
  int32_t word = scalarBuffer(typeOf(v).element);
  Form from = forms_[r.v].front();
  if (isa::packingOf(typeOf(v).element) > 1 && !isFloat(typeOf(v).element)) {
    // The rest of a packed element's word means nothing; a scalar's word is whole.
    auto wide = widen(from.buffer, from.dims);
    if (!wide) return wide.takeError();
    from.buffer = *wide;
  }
  llo::Dma d;
  d.src.index = from.buffer;
  d.dst.index = word;
  d.run = 4;
  d.dst_sem = local_sem_;
  b_.dma(std::move(d));
  b_.semWait(local_sem_, {false, 0, 4});
  addForm(r, word, {});
  return word;
}

std::optional<llvm::ArrayRef<uint8_t>> Lowering::splatBytes(hlo::ValueId v) const {
  hlo::OpId def = m_.value(root(v)).def;
  if (!def.valid() || m_.op(def).opcode != hlo::Opcode::constant) return std::nullopt;
  const hlo::Attr* a = m_.findAttr(def, hlo::AttrKey::value);
  const hlo::Literal& lit = m_.literal(a->literal);
  size_t width = static_cast<size_t>(hostBytes(m_.type(lit.type).element));
  if (lit.bytes.empty()) return std::nullopt;
  for (size_t i = width; i < lit.bytes.size(); ++i)
    if (lit.bytes[i] != lit.bytes[i % width]) return std::nullopt;
  return llvm::ArrayRef<uint8_t>(lit.bytes.data(), width);
}

template <class Spec, class Emit>
llvm::Expected<int32_t> Lowering::kernelFor(const Spec& spec, llvm::StringRef name, Emit emit) {
  std::string key = specKey(spec);
  auto it = kernels_.find(key);
  if (it != kernels_.end()) return it->second;
  std::string unique = name.str() + "." + std::to_string(kernel_names_[name.str()]++);
  auto kernel = emit(spec, target_.chip, unique);
  if (!kernel) return kernel.takeError();
  out_.kernels.push_back(std::move(*kernel));
  int32_t id = static_cast<int32_t>(out_.kernels.size() - 1);
  kernels_.emplace(std::move(key), id);
  return id;
}
template llvm::Expected<int32_t> Lowering::kernelFor(const LoopSpec&, llvm::StringRef, decltype(&emitLoop));
template llvm::Expected<int32_t> Lowering::kernelFor(const ReduceSpec&, llvm::StringRef, decltype(&emitReduce));
template llvm::Expected<int32_t> Lowering::kernelFor(const DotSpec&, llvm::StringRef, decltype(&emitDot));
template llvm::Expected<int32_t> Lowering::kernelFor(const TransposeSpec&, llvm::StringRef, decltype(&emitTranspose));

llvm::Expected<int32_t> Lowering::loopKernel(const LoopSpec& spec, llvm::StringRef name) { return kernelFor(spec, name, &emitLoop); }

llo::CallArg Lowering::bufferArg(int32_t buffer, llo::Scalar offset) const {
  llo::CallArg a;
  a.is_buffer = true;
  a.buffer = buffer;
  a.offset = offset;
  return a;
}

void Lowering::callKernel(int32_t kernel, llvm::ArrayRef<int32_t> buffers, llvm::ArrayRef<uint32_t> slots) {
  std::vector<llo::CallArg> args;
  for (int32_t b : buffers) args.push_back(bufferArg(b));
  int32_t row = -1;
  if (!slots.empty()) {
    row = static_cast<int32_t>(out_.call_locs.size());
    out_.call_locs.emplace_back(slots.begin(), slots.end());
  }
  b_.call(kernel, std::move(args), row);
}

}  // namespace tpu::lower
