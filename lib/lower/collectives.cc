// Collectives as programs of remote DMAs, semaphores and adds, the same code on every device: who the peers are comes from
// the device table.
//
// Small ones exchange directly: each device says "ready" to its peers (its receive slots are free), waits for theirs, pushes
// its pieces into their slots, and combines what arrived in group order, so that replicas agree bit for bit.
// Large all-reduces run as two rings in opposite directions (ring.cc).
#include <algorithm>

#include "lowering.h"
#include "tpu/hlo/analysis.h"

namespace tpu::lower {

using hlo::AttrKey;
using HloOp = hlo::Opcode;

namespace {

constexpr uint32_t kNobody = 0xffffffffu;
constexpr int64_t kMostInputs = 8;             // of one combining kernel
constexpr int64_t kMostPerWait = 1 << 30;      // bytes that one wait may count, and one transfer move
constexpr int64_t kRingBytes = 256 * 1024;     // all-reduces from this size on go round the ring

// Position of a device along the axes of a group attribute: value of each axis, major to minor.
int64_t axisStride(const hlo::Mesh& mesh, const hlo::AxisRef& a) {
  int64_t stride = 1;
  for (size_t k = a.axis + 1; k < mesh.axes.size(); ++k) stride *= mesh.axes[k].size;
  return stride * (mesh.axes[a.axis].size / (a.pre * a.size));
}

// Pieces stand behind each other in a buffer: [n] + piece, the piece at least a matrix so that n is a leading dimension.
Dims matrixDims(llvm::ArrayRef<int64_t> d) {
  Dims out(d.begin(), d.end());
  while (out.size() < 2) out.insert(out.begin(), 1);
  return out;
}

Dims stacked(int64_t n, llvm::ArrayRef<int64_t> piece) {
  Dims out = matrixDims(piece);
  out.insert(out.begin(), n);
  return out;
}

}  // namespace

std::vector<std::vector<int64_t>> Lowering::groupsOf(hlo::OpId id) const {
  std::vector<std::vector<int64_t>> groups;
  if (const hlo::Attr* a = m_.findAttr(id, AttrKey::axes)) {
    const hlo::Mesh& mesh = m_.meshes[a->mesh.v];
    int64_t n = 1;
    for (const hlo::AxisRef& r : a->axes) n *= r.size;
    std::vector<int64_t> offsets = {0};
    for (const hlo::AxisRef& r : a->axes) {
      std::vector<int64_t> next;
      for (int64_t base : offsets)
        for (int64_t i = 0; i < r.size; ++i) next.push_back(base + i * axisStride(mesh, r));
      offsets = std::move(next);
    }
    std::vector<bool> seen(static_cast<size_t>(out_.devices), false);
    for (int64_t d = 0; d < out_.devices; ++d) {
      if (seen[d]) continue;
      // d is the smallest device of its group: all its positions along the axes are 0.
      std::vector<int64_t> group;
      for (int64_t o : offsets) group.push_back(d + o);
      for (int64_t g : group) seen[g] = true;
      groups.push_back(std::move(group));
    }
    return groups;
  }
  const hlo::Attr* g = m_.findAttr(id, AttrKey::replica_groups);
  if (!g || g->groups.ids.empty()) {
    groups.emplace_back();
    for (int64_t d = 0; d < out_.devices; ++d) groups[0].push_back(d);
    return groups;
  }
  for (int64_t r = 0; r < g->groups.rows; ++r) {
    std::vector<int64_t> group;
    for (int64_t c = 0; c < g->groups.cols; ++c)
      if (int64_t d = g->groups.ids[r * g->groups.cols + c]; d >= 0) group.push_back(d);
    groups.push_back(std::move(group));
  }
  return groups;
}

int Lowering::deviceWord(const std::vector<uint32_t>& per_device) {
  // A column that exists already is shared.
  int64_t words = out_.device_table_words;
  for (int64_t w = 0; w < words; ++w) {
    bool same = true;
    for (int64_t d = 0; d < out_.devices && same; ++d) same = out_.device_table[d * words + w] == per_device[d];
    if (same) return static_cast<int>(w);
  }
  std::vector<uint32_t> table;
  for (int64_t d = 0; d < out_.devices; ++d) {
    table.insert(table.end(), out_.device_table.begin() + d * words, out_.device_table.begin() + (d + 1) * words);
    table.push_back(per_device[d]);
  }
  out_.device_table = std::move(table);
  return static_cast<int>(out_.device_table_words++);
}

llvm::Expected<GroupTable*> Lowering::groupTable(hlo::OpId id) {
  std::vector<std::vector<int64_t>> groups = groupsOf(id);
  std::string key;
  for (const auto& g : groups) {
    for (int64_t d : g) key += std::to_string(d) + ",";
    key += ";";
  }
  if (auto it = groups_.find(key); it != groups_.end()) return &it->second;
  GroupTable t;
  t.size = static_cast<int64_t>(groups[0].size());
  std::vector<uint32_t> rank(out_.devices, 0), ring_rank(out_.devices, 0), next(out_.devices, 0), prev(out_.devices, 0);
  std::vector<std::vector<uint32_t>> peers(t.size, rank), peer_rank(t.size, rank);
  std::vector<bool> seen(out_.devices, false);
  for (const auto& g : groups) {
    if (static_cast<int64_t>(g.size()) != t.size) return refuse(id, "groups of different sizes");
    std::vector<int64_t> ring = ringOrder(g);
    for (int64_t i = 0; i < t.size; ++i) {
      if (g[i] < 0 || g[i] >= out_.devices || seen[g[i]]) return refuse(id, "its groups do not partition the devices");
      seen[g[i]] = true;
      rank[g[i]] = static_cast<uint32_t>(i);
      for (int64_t j = 1; j < t.size; ++j) {
        peers[j][g[i]] = static_cast<uint32_t>(g[(i + j) % t.size]);
        peer_rank[j][g[i]] = static_cast<uint32_t>((i + j) % t.size);
      }
      ring_rank[ring[i]] = static_cast<uint32_t>(i);
      next[ring[i]] = static_cast<uint32_t>(ring[(i + 1) % t.size]);
      prev[ring[i]] = static_cast<uint32_t>(ring[(i + t.size - 1) % t.size]);
    }
  }
  t.rank_word = deviceWord(rank);
  for (int64_t j = 1; j < t.size; ++j) {
    t.peer_words.push_back(deviceWord(peers[j]));
    t.peer_ranks.push_back(deviceWord(peer_rank[j]));
  }
  t.ring_rank_word = deviceWord(ring_rank);
  t.ring_next_word = deviceWord(next);
  t.ring_prev_word = deviceWord(prev);
  for (int* sem : {&t.ready_sem, &t.recv_sem, &t.send_sem}) *sem = out_.num_sems++;
  return &groups_.emplace(std::move(key), std::move(t)).first->second;
}

// An order of the group in which neighbours are one link apart: a cycle through a rectangle of chips where one side is even, a
// line folded back on itself otherwise.
std::vector<int64_t> Lowering::ringOrder(const std::vector<int64_t>& group) const {
  int64_t n = static_cast<int64_t>(group.size());
  std::vector<std::vector<int64_t>> at;
  for (int64_t d : group) {
    int64_t device = out_.device_order.empty() ? d : out_.device_order[d];
    int64_t chip = device / target_.chip.devicesPerChip();
    std::vector<int64_t> c(target_.box.size());
    for (size_t k = c.size(); k-- > 0;) {
      c[k] = chip % target_.box[k];
      chip /= target_.box[k];
    }
    at.push_back(std::move(c));
  }
  std::vector<size_t> varying;
  std::vector<std::vector<int64_t>> values;
  for (size_t k = 0; k < target_.box.size(); ++k) {
    std::vector<int64_t> v;
    for (const auto& c : at) v.push_back(c[k]);
    std::sort(v.begin(), v.end());
    v.erase(std::unique(v.begin(), v.end()), v.end());
    if (v.size() > 1) {
      varying.push_back(k);
      values.push_back(std::move(v));
    }
  }
  auto member = [&](int64_t a, int64_t b) -> int64_t {
    for (int64_t i = 0; i < n; ++i)
      if (at[i][varying[0]] == values[0][a] && at[i][varying[1]] == values[1][b]) return group[i];
    return -1;
  };
  if (varying.size() == 2 && static_cast<int64_t>(values[0].size() * values[1].size()) == n) {
    bool swap = values[0].size() % 2 != 0;
    if (swap) {
      std::swap(varying[0], varying[1]);
      std::swap(values[0], values[1]);
    }
    int64_t rows = static_cast<int64_t>(values[0].size()), cols = static_cast<int64_t>(values[1].size());
    if (rows % 2 == 0) {
      std::vector<int64_t> ring;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t k = 1; k < cols; ++k) ring.push_back(member(r, r % 2 == 0 ? k : cols - k));
      for (int64_t r = rows; r-- > 0;) ring.push_back(member(r, 0));
      if (!llvm::is_contained(ring, -1)) return ring;
    }
  }
  if (varying.size() == 1 && !target_.wrap[varying[0]] && n > 2) {
    std::vector<int64_t> sorted(group), ring;
    std::vector<size_t> order(group.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return at[a][varying[0]] < at[b][varying[0]]; });
    for (size_t i = 0; i < order.size(); i += 2) ring.push_back(group[order[i]]);
    for (size_t i = order.size() - (order.size() % 2 ? 2 : 1); i < order.size(); i -= 2) ring.push_back(group[order[i]]);
    return ring;
  }
  return group;
}

void Lowering::exchange(const GroupTable& g, int32_t send, bool one_piece, int32_t slots, int64_t bytes) {
  // A wait counts the bytes of all peers together.
  const int64_t peers = g.size - 1;
  const int64_t most = kMostPerWait / std::max<int64_t>(1, peers) / 4096 * 4096;
  for (int64_t at = 0; at < bytes; at += most) exchangePart(g, send, one_piece, slots, bytes, at, std::min(most, bytes - at));
  out_.required_ici_bytes += static_cast<int64_t>(trips_) * peers * bytes;
}

// Bytes [at, at + part) of every piece.
void Lowering::exchangePart(const GroupTable& g, int32_t send, bool one_piece, int32_t slots, int64_t bytes, int64_t at, int64_t part) {
  auto word = [&](int w) { return b_.pseudo(llo::PseudoKind::kDeviceWord, w); };
  auto reg = [](llo::S s) { return llo::Scalar{true, s.id, 0}; };
  auto imm = [](int64_t v) { return llo::Scalar{false, 0, v}; };
  llo::S own = b_.s(isa::Opcode::smul, {word(g.rank_word), bytes});
  int64_t peers = g.size - 1;
  for (int64_t j = 0; j < peers; ++j) b_.semSignal(reg(word(g.peer_words[j])), g.ready_sem, imm(1));
  if (peers) b_.semWait(g.ready_sem, imm(peers));
  auto transfer = [&](llo::S piece) {
    llo::Dma d;
    d.src.index = send;
    d.src.offset = d.dst.offset = at;
    if (!one_piece) d.src.regs.push_back(piece.id);
    d.dst.index = slots;
    d.dst.regs.push_back(own.id);
    d.run = part;
    return d;
  };
  for (int64_t j = 0; j < peers; ++j) {
    llo::Dma d = transfer(one_piece ? own : b_.s(isa::Opcode::smul, {word(g.peer_ranks[j]), bytes}));
    d.remote = true;
    d.device = reg(word(g.peer_words[j]));
    d.src_sem = g.send_sem;
    d.dst_sem = g.recv_sem;
    b_.dma(std::move(d));
  }
  llo::Dma d = transfer(own);
  d.dst_sem = local_sem_;
  b_.dma(std::move(d));
  b_.semWait(local_sem_, imm(part));
  // The transfers take different ways and may end in any order: one wait covers them all.
  if (peers) b_.semWait(g.recv_sem, imm(peers * part));
  if (peers) b_.semWait(g.send_sem, imm(peers * part));
}

// dst = slot 0 op slot 1 op ... in group order, by kernels of at most kMostInputs inputs.
llvm::Error Lowering::combineSlots(hlo::OpId id, hlo::RegionId region, int32_t slots, int64_t n, ElementType type,
                                   llvm::ArrayRef<int64_t> dims, int32_t dst) {
  Dims shape = matrixDims(dims);
  int64_t bytes = out_.buffers[slots].bytes / n;
  int32_t acc = -1;
  for (int64_t at = 0; at < n || acc < 0;) {
    LoopSpec spec;
    spec.shape = shape;
    std::vector<llo::CallArg> args;
    int value = -1;
    auto take = [&](llo::CallArg arg) -> llvm::Error {
      ExprNode in;
      in.kind = ExprNode::kInput;
      in.type = type;
      in.index = static_cast<int>(spec.inputs.size());
      spec.inputs.push_back({type, shape, false});
      args.push_back(std::move(arg));
      spec.nodes.push_back(in);
      int node = static_cast<int>(spec.nodes.size() - 1);
      if (value < 0) {
        value = node;
        return llvm::Error::success();
      }
      std::vector<ExprNode> body;
      auto result = regionExpr(region, body);
      if (!result) return result.takeError();
      std::vector<int> where(body.size());
      for (size_t i = 0; i < body.size(); ++i) {
        if (body[i].kind == ExprNode::kInput) {
          where[i] = body[i].index == 0 ? value : node;
          continue;
        }
        for (int& a : body[i].args) a = where[a];
        spec.nodes.push_back(body[i]);
        where[i] = static_cast<int>(spec.nodes.size() - 1);
      }
      value = where[(*result)[0]];
      return llvm::Error::success();
    };
    if (acc >= 0)
      if (auto err = take(bufferArg(acc))) return err;
    for (; at < n && static_cast<int64_t>(args.size()) < kMostInputs; ++at)
      if (auto err = take(bufferArg(slots, {false, 0, at * bytes}))) return err;
    spec.outputs = {value};
    auto kernel = loopKernel(spec, "combine");
    if (!kernel) return kernel.takeError();
    int32_t out = at >= n ? dst : tempBuffer(type, shape);
    args.push_back(bufferArg(out));
    int32_t locs = static_cast<int32_t>(out_.call_locs.size());
    out_.call_locs.push_back({internLoc(locOf(id))});
    b_.call(*kernel, std::move(args), locs);
    acc = out;
  }
  return llvm::Error::success();
}

llvm::Error Lowering::lowerAllReduce(hlo::OpId id) {
  const hlo::Op op = m_.op(id);
  auto table = groupTable(id);
  if (!table) return table.takeError();
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const hlo::Type t = typeOf(op.operands[i]);
    Dims dims = t.dims.empty() ? Dims{1} : Dims(t.dims.begin(), t.dims.end());
    auto src = form(op.operands[i], dims);
    if (!src) return src.takeError();
    int32_t out = t.dims.empty() ? tempBuffer(t.element, dims) : resultBuffer(op.results[i], dims);
    int64_t bytes = out_.buffers[out].bytes;
    if ((*table)->size > 2 && bytes >= kRingBytes && bytes % 4096 == 0) {
      if (auto err = ringAllReduce(id, **table, *src, out, t.element, bytes)) return err;
    } else {
      int32_t slots = tempBuffer(t.element, stacked((*table)->size, dims));
      exchange(**table, *src, true, slots, bytes);
      if (auto err = combineSlots(id, op.regions[0], slots, (*table)->size, t.element, dims, out)) return err;
    }
    addForm(op.results[i], out, dims);
  }
  return llvm::Error::success();
}

llvm::Error Lowering::lowerAllGather(hlo::OpId id) {
  const hlo::Op op = m_.op(id);
  auto table = groupTable(id);
  if (!table) return table.takeError();
  int64_t n = (*table)->size, axis = m_.getInt(id, AttrKey::all_gather_dim);
  for (size_t i = 0; i < op.operands.size(); ++i) {
    llvm::ArrayRef<int64_t> piece = typeOf(op.operands[i]).dims, dims = typeOf(op.results[i]).dims;
    ElementType type = typeOf(op.results[i]).element;
    auto src = form(op.operands[i]);
    if (!src) return src.takeError();
    int64_t bytes = out_.buffers[*src].bytes;
    int32_t out = resultBuffer(op.results[i], dims);
    Dims slot_dims = stacked(n, piece);
    bool direct = axis == 0 && sameBytes(type, slot_dims, dims);
    int32_t slots = direct ? out : tempBuffer(type, slot_dims);
    exchange(**table, *src, true, slots, bytes);
    if (!direct)
      if (auto err = unstack(slots, n, piece, out, dims, axis, locOf(id))) return err;
    addForm(op.results[i], out, dims);
  }
  return llvm::Error::success();
}

// Between n stacked pieces and one array that they form along `axis`.
llvm::Error Lowering::unstack(int32_t slots, int64_t n, llvm::ArrayRef<int64_t> piece, int32_t out, llvm::ArrayRef<int64_t> dims, int64_t axis, llvm::StringRef loc) {
  return restack(slots, n, piece, out, dims, axis, loc, /*gather=*/true);
}

llvm::Error Lowering::restack(int32_t slots, int64_t n, llvm::ArrayRef<int64_t> piece, int32_t array, llvm::ArrayRef<int64_t> dims, int64_t axis,
                              llvm::StringRef loc, bool gather) {
  Dims slot_dims = stacked(n, piece);
  size_t extra = slot_dims.size() - piece.size();
  // Pieces that share a word with their neighbour travel as 32-bit words.
  ElementType type = out_.buffers[array].element;
  int64_t p = isa::packingOf(type);
  if (p > 1 && axis == static_cast<int64_t>(dims.size()) - 2 && piece[axis] % p != 0) {
    int32_t wide_slots = tempBuffer(wideType(type), slot_dims), wide_array = tempBuffer(wideType(type), dims);
    if (auto err = convertBuffer(gather ? slots : array, gather ? wide_slots : wide_array, gather ? slot_dims : Dims(dims.begin(), dims.end()))) return err;
    if (auto err = restack(wide_slots, n, piece, wide_array, dims, axis, loc, gather)) return err;
    return convertBuffer(gather ? wide_array : wide_slots, gather ? array : slots, gather ? Dims(dims.begin(), dims.end()) : slot_dims);
  }
  for (int64_t i = 0; i < n; ++i) {
    CopySide stack, whole;
    stack.buffer = slots;
    stack.dims = slot_dims;
    stack.start.assign(slot_dims.size(), 0);
    stack.start[0] = i;
    stack.iter.assign(extra, -1);
    whole.buffer = array;
    whole.dims.assign(dims.begin(), dims.end());
    whole.start.assign(dims.size(), 0);
    whole.start[axis] = i * piece[axis];
    for (size_t d = 0; d < piece.size(); ++d) {
      stack.iter.push_back(static_cast<int>(d));
      whole.iter.push_back(static_cast<int>(d));
    }
    if (auto err = gather ? copyBox(piece, stack, whole, loc) : copyBox(piece, whole, stack, loc)) return err;
  }
  return llvm::Error::success();
}

llvm::Error Lowering::lowerReduceScatter(hlo::OpId id) {
  const hlo::Op op = m_.op(id);
  auto table = groupTable(id);
  if (!table) return table.takeError();
  int64_t n = (*table)->size, axis = m_.getInt(id, AttrKey::scatter_dimension);
  for (size_t i = 0; i < op.operands.size(); ++i) {
    llvm::ArrayRef<int64_t> dims = typeOf(op.operands[i]).dims, piece = typeOf(op.results[i]).dims;
    ElementType type = typeOf(op.results[i]).element;
    auto src = form(op.operands[i]);
    if (!src) return src.takeError();
    Dims slot_dims = stacked(n, piece);
    int32_t send = *src;
    if (axis != 0 || !sameBytes(type, slot_dims, dims)) {
      send = tempBuffer(type, slot_dims);
      if (auto err = restack(send, n, piece, *src, dims, axis, locOf(id), /*gather=*/false)) return err;
    }
    int32_t slots = tempBuffer(type, slot_dims), out = resultBuffer(op.results[i], piece);
    exchange(**table, send, false, slots, out_.buffers[slots].bytes / n);
    if (auto err = combineSlots(id, op.regions[0], slots, n, type, piece, out)) return err;
    addForm(op.results[i], out, piece);
  }
  return llvm::Error::success();
}

llvm::Error Lowering::lowerAllToAll(hlo::OpId id) {
  const hlo::Op op = m_.op(id);
  auto table = groupTable(id);
  if (!table) return table.takeError();
  int64_t n = (*table)->size, split = m_.getInt(id, AttrKey::split_dimension), concat = m_.getInt(id, AttrKey::concat_dimension);
  if (m_.has(id, AttrKey::split_count) && m_.getInt(id, AttrKey::split_count) != n) return refuse(id, "split_count differs from the group size");
  for (size_t i = 0; i < op.operands.size(); ++i) {
    llvm::ArrayRef<int64_t> dims = typeOf(op.operands[i]).dims, out_dims = typeOf(op.results[i]).dims;
    ElementType type = typeOf(op.results[i]).element;
    Dims piece(dims.begin(), dims.end());
    piece[split] /= n;
    auto src = form(op.operands[i]);
    if (!src) return src.takeError();
    Dims slot_dims = stacked(n, piece);
    int32_t send = tempBuffer(type, slot_dims), slots = tempBuffer(type, slot_dims), out = resultBuffer(op.results[i], out_dims);
    if (auto err = restack(send, n, piece, *src, dims, split, locOf(id), /*gather=*/false)) return err;
    exchange(**table, send, false, slots, out_.buffers[slots].bytes / n);
    if (auto err = unstack(slots, n, piece, out, out_dims, concat, locOf(id))) return err;
    addForm(op.results[i], out, out_dims);
  }
  return llvm::Error::success();
}

llvm::Error Lowering::lowerPermute(hlo::OpId id) {
  const hlo::Op op = m_.op(id);
  const hlo::Attr* pairs = m_.findAttr(id, AttrKey::source_target_pairs);
  std::vector<uint32_t> target(out_.devices, kNobody), source(out_.devices, kNobody);
  auto link = [&](int64_t from, int64_t to) {
    target[from] = static_cast<uint32_t>(to);
    source[to] = static_cast<uint32_t>(from);
  };
  bool in_groups = m_.has(id, AttrKey::axes);
  for (const auto& group : in_groups ? groupsOf(id) : std::vector<std::vector<int64_t>>{{}})
    for (int64_t r = 0; pairs && r < pairs->groups.rows; ++r) {
      int64_t from = pairs->groups.ids[2 * r], to = pairs->groups.ids[2 * r + 1];
      if (in_groups) link(group[from], group[to]);
      else link(from, to);
    }
  // Permutes of the same pairs share semaphores: each device hears from one target and one source, in order.
  auto [entry, fresh] = permutes_.try_emplace(target);
  if (fresh) entry->second = {deviceWord(target), deviceWord(source), out_.num_sems, out_.num_sems + 1, out_.num_sems + 2};
  if (fresh) out_.num_sems += 3;
  const auto [target_word, source_word, ready, recv, sent] = entry->second;
  auto reg = [](llo::S s) { return llo::Scalar{true, s.id, 0}; };
  bool anyone_missing = llvm::is_contained(source, kNobody);
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const hlo::Type t = typeOf(op.operands[i]);
    Dims dims = t.dims.empty() ? Dims{1} : Dims(t.dims.begin(), t.dims.end());
    auto src = form(op.operands[i], dims);
    if (!src) return src.takeError();
    int32_t out = t.dims.empty() ? tempBuffer(t.element, dims) : resultBuffer(op.results[i], dims);
    int64_t bytes = out_.buffers[out].bytes;
    llo::S to = b_.pseudo(llo::PseudoKind::kDeviceWord, target_word), from = b_.pseudo(llo::PseudoKind::kDeviceWord, source_word);
    llo::P sends = b_.p(isa::Opcode::scmp_ne, {to, -1}), receives = b_.p(isa::Opcode::scmp_ne, {from, -1});
    auto waitFor = [&](int sem) {
      for (int64_t at = 0; at < bytes; at += kMostPerWait) b_.semWait(sem, {false, 0, std::min(kMostPerWait, bytes - at)});
    };
    llvm::Error err = llvm::Error::success();
    b_.ifThen(receives, [&] { b_.semSignal(reg(from), ready, {false, 0, 1}); });
    b_.ifThen(sends, [&] {
      b_.semWait(ready, {false, 0, 1});
      for (int64_t at = 0; at < bytes; at += kMostPerWait) {
        llo::Dma d;
        d.src.index = *src;
        d.dst.index = out;
        d.src.offset = d.dst.offset = at;
        d.run = std::min(kMostPerWait, bytes - at);
        d.remote = true;
        d.device = reg(to);
        d.src_sem = sent;
        d.dst_sem = recv;
        b_.dma(std::move(d));
      }
      waitFor(sent);
    });
    b_.ifElse(receives, [&] { waitFor(recv); },
              [&] {
                if (anyone_missing) err = fillBuffer(out, dims, 0);
              });
    if (err) return err;
    addForm(op.results[i], out, dims);
    out_.required_ici_bytes += static_cast<int64_t>(trips_) * bytes;
  }
  return llvm::Error::success();
}

}  // namespace tpu::lower
