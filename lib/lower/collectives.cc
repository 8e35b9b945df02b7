// Collectives as programs of remote DMAs, semaphores and adds, the same code on every device: who the peers are comes from
// the device table.
//
// Small ones exchange directly: each device says "ready" to its peers (its receive slots are free), waits for theirs, pushes
// its pieces into their slots, and combines what arrived in group order, so that replicas agree bit for bit.
// Large all-reduces run as two rings in opposite directions (ring.cc).
#include <algorithm>

#include "llvm/Support/MathExtras.h"
#include "lowering.h"
#include "tpu/hlo/analysis.h"

namespace tpu::lower {

using hlo::AttrKey;
using HloOp = hlo::Opcode;

namespace {

constexpr uint32_t kNobody = 0xffffffffu;
constexpr int64_t kMostInputs = 8;             // of one combining kernel
constexpr int64_t kRingBytes = 256 * 1024;     // all-reduces from this size on go round the ring

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

void Lowering::exchange(const GroupTable& g, llvm::ArrayRef<Exchange> all) {
  // A wait counts the bytes of all peers together.
  const int64_t peers = g.size - 1;
  const int64_t most = kMostRun / std::max<int64_t>(1, peers) / 4096 * 4096;
  std::vector<ExchangePart> batch;
  int64_t batched = 0;
  auto send = [&] {
    if (!batch.empty()) exchangeParts(g, batch, batched);
    batch.clear();
    batched = 0;
  };
  for (const Exchange& x : all) {
    for (int64_t at = 0; at < x.bytes; at += most) {
      const int64_t bytes = std::min(most, x.bytes - at);
      if (batched + bytes > most) send();
      batch.push_back({&x, at, bytes});
      batched += bytes;
    }
    out_.required_ici_bytes += static_cast<int64_t>(trips_) * peers * x.bytes;
  }
  send();
}

// Every transfer is started before the first wait: the way to the peers and back is paid once.
void Lowering::exchangeParts(const GroupTable& g, llvm::ArrayRef<ExchangePart> parts, int64_t total) {
  auto word = [&](int w) { return b_.pseudo(llo::PseudoKind::kDeviceWord, w); };
  auto reg = [](llo::S s) { return llo::Scalar{true, s.id, 0}; };
  auto imm = [](int64_t v) { return llo::Scalar{false, 0, v}; };
  const int64_t peers = g.size - 1;
  for (int64_t j = 0; j < peers; ++j) b_.semSignal(reg(word(g.peer_words[j])), g.ready_sem, imm(1));
  if (peers) b_.semWait(g.ready_sem, imm(peers));
  for (const ExchangePart& part : parts) {
    const Exchange& x = *part.of;
    llo::S own = b_.s(isa::Opcode::smul, {word(g.rank_word), x.bytes});
    auto transfer = [&](llo::S piece) {
      llo::Dma d;
      d.src.index = x.send;
      d.src.offset = d.dst.offset = part.at;
      if (!x.one_piece) d.src.regs.push_back(piece.id);
      d.dst.index = x.slots;
      d.dst.regs.push_back(own.id);
      d.run = part.bytes;
      return d;
    };
    for (int64_t j = 0; j < peers; ++j) {
      llo::Dma d = transfer(x.one_piece ? own : b_.s(isa::Opcode::smul, {word(g.peer_ranks[j]), x.bytes}));
      d.remote = true;
      d.device = reg(word(g.peer_words[j]));
      d.src_sem = g.send_sem;
      d.dst_sem = g.recv_sem;
      b_.dma(std::move(d));
    }
    llo::Dma d = transfer(own);
    d.dst_sem = local_sem_;
    b_.dma(std::move(d));
  }
  b_.semWait(local_sem_, imm(total));
  // The transfers take different ways and may end in any order: one wait covers them all.
  if (peers) b_.semWait(g.recv_sem, imm(peers * total));
  if (peers) b_.semWait(g.send_sem, imm(peers * total));
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

// One buffer, summed over the group: round the ring where it is large, else by exchange.
llvm::Error Lowering::reduceBuffer(hlo::OpId id, GroupTable& g, ElementType type, const Reduced& part) {
  const int64_t bytes = out_.buffers[part.out].bytes;
  if (g.size > 2 && bytes >= kRingBytes && bytes % 4096 == 0)
    return ringAllReduce(id, g, part.src, part.out, type, bytes);
  int32_t slots = tempBuffer(type, stacked(g.size, part.dims));
  exchange(g, {{part.src, true, slots, bytes}});
  return combineSlots(id, m_.op(id).regions[0], slots, g.size, type, part.dims, part.out);
}

// Small operands of one type stand behind each other in one buffer, so that all pay the way once.
llvm::Error Lowering::reducePacked(hlo::OpId id, GroupTable& g, ElementType type, llvm::ArrayRef<Reduced> parts) {
  if (parts.size() == 1) return reduceBuffer(id, g, type, parts[0]);
  constexpr int64_t kRow = 512, kTile = 4096;  // bytes of 128 lanes, and of a vector register
  int64_t total = 0;
  for (const Reduced& part : parts) total += llvm::alignTo(out_.buffers[part.out].bytes, kRow);
  total = llvm::alignTo(total, kTile);
  const Dims dims = {total * isa::packingOf(type) / kRow, 128};
  const Reduced whole = {tempBuffer(type, dims), tempBuffer(type, dims), dims};
  auto copyAll = [&](bool in) {
    int64_t at = 0, bytes = 0;
    for (const Reduced& part : parts) {
      const int64_t n = out_.buffers[part.out].bytes;
      if (in) startCopy(part.src, whole.src, n, 0, at);
      else startCopy(whole.out, part.out, n, at, 0);
      at += llvm::alignTo(n, kRow);
      bytes += n;
    }
    b_.semWait(local_sem_, {false, 0, bytes});
  };
  copyAll(/*in=*/true);
  if (auto err = reduceBuffer(id, g, type, whole)) return err;
  copyAll(/*in=*/false);
  return llvm::Error::success();
}

llvm::Error Lowering::lowerAllReduce(hlo::OpId id) {
  const hlo::Op op = m_.op(id);
  auto table = groupTable(id);
  if (!table) return table.takeError();
  std::map<ElementType, std::vector<Reduced>> small;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const hlo::Type t = typeOf(op.operands[i]);
    Dims dims = t.dims.empty() ? Dims{1} : Dims(t.dims.begin(), t.dims.end());
    auto src = form(op.operands[i], dims);
    if (!src) return src.takeError();
    int32_t out = t.dims.empty() ? tempBuffer(t.element, dims) : resultBuffer(op.results[i], dims);
    const Reduced part = {*src, out, dims};
    if (out_.buffers[out].bytes < kRingBytes) small[t.element].push_back(part);
    else if (auto err = reduceBuffer(id, **table, t.element, part)) return err;
    addForm(op.results[i], out, dims);
  }
  for (const auto& [type, parts] : small)
    if (auto err = reducePacked(id, **table, type, parts)) return err;
  return llvm::Error::success();
}

llvm::Error Lowering::lowerAllGather(hlo::OpId id) {
  const hlo::Op op = m_.op(id);
  auto table = groupTable(id);
  if (!table) return table.takeError();
  int64_t n = (*table)->size, axis = m_.getInt(id, AttrKey::all_gather_dim);
  std::vector<Exchange> all;
  std::vector<int32_t> outs;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    llvm::ArrayRef<int64_t> dims = typeOf(op.results[i]).dims;
    ElementType type = typeOf(op.results[i]).element;
    auto src = form(op.operands[i]);
    if (!src) return src.takeError();
    outs.push_back(resultBuffer(op.results[i], dims));
    Dims slot_dims = stacked(n, typeOf(op.operands[i]).dims);
    bool direct = axis == 0 && sameBytes(type, slot_dims, dims);
    all.push_back({*src, true, direct ? outs[i] : tempBuffer(type, slot_dims), out_.buffers[*src].bytes});
  }
  exchange(**table, all);
  for (size_t i = 0; i < op.operands.size(); ++i) {
    llvm::ArrayRef<int64_t> piece = typeOf(op.operands[i]).dims, dims = typeOf(op.results[i]).dims;
    if (all[i].slots != outs[i])
      if (auto err = unstack(all[i].slots, n, piece, outs[i], dims, axis, locOf(id))) return err;
    addForm(op.results[i], outs[i], dims);
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
    exchange(**table, {{send, false, slots, out_.buffers[slots].bytes / n}});
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
    exchange(**table, {{send, false, slots, out_.buffers[slots].bytes / n}});
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
  const PermuteTable& permute = entry->second;
  auto reg = [](llo::S s) { return llo::Scalar{true, s.id, 0}; };
  bool anyone_missing = llvm::is_contained(source, kNobody);
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const hlo::Type t = typeOf(op.operands[i]);
    Dims dims = t.dims.empty() ? Dims{1} : Dims(t.dims.begin(), t.dims.end());
    auto src = form(op.operands[i], dims);
    if (!src) return src.takeError();
    int32_t out = t.dims.empty() ? tempBuffer(t.element, dims) : resultBuffer(op.results[i], dims);
    int64_t bytes = out_.buffers[out].bytes;
    llo::S to = b_.pseudo(llo::PseudoKind::kDeviceWord, permute.target_word), from = b_.pseudo(llo::PseudoKind::kDeviceWord, permute.source_word);
    llo::P sends = b_.p(isa::Opcode::scmp_ne, {to, -1}), receives = b_.p(isa::Opcode::scmp_ne, {from, -1});
    auto waitFor = [&](int sem) {
      for (int64_t at = 0; at < bytes; at += kMostRun) b_.semWait(sem, {false, 0, std::min(kMostRun, bytes - at)});
    };
    llvm::Error err = llvm::Error::success();
    b_.ifThen(receives, [&] { b_.semSignal(reg(from), permute.ready_sem, {false, 0, 1}); });
    b_.ifThen(sends, [&] {
      b_.semWait(permute.ready_sem, {false, 0, 1});
      for (int64_t at = 0; at < bytes; at += kMostRun) {
        llo::Dma d;
        d.src.index = *src;
        d.dst.index = out;
        d.src.offset = d.dst.offset = at;
        d.run = std::min(kMostRun, bytes - at);
        d.remote = true;
        d.device = reg(to);
        d.src_sem = permute.send_sem;
        d.dst_sem = permute.recv_sem;
        b_.dma(std::move(d));
      }
      waitFor(permute.send_sem);
    });
    b_.ifElse(receives, [&] { waitFor(permute.recv_sem); },
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
