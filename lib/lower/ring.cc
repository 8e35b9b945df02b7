// All-reduce of large arrays: two rings in opposite directions, half of the data each, every half cut into n chunks and
// each chunk into pieces, so that adding one piece hides behind the transfer of the next.
//
// With r the position on the ring, step t of the first phase receives the partial sum of chunk r-t-1 from the device before,
// adds the own part and sends it on; after n-1 steps chunk r+1 is complete here. The second phase sends complete chunks
// round. The other direction is the same with r' = (n - r) mod n. Partial sums live in receive slots of their own, complete
// chunks go straight into the result, so no range is ever both sent and received.
#include <algorithm>

#include "lowering.h"

namespace tpu::lower {

namespace {
constexpr int64_t kPieceBytes = 512 * 1024;
constexpr int64_t kMostPieces = 16;
constexpr int64_t kUnit = 4096;  // one vector register
}  // namespace

llvm::Error Lowering::ringAllReduce(hlo::OpId id, GroupTable& g, int32_t src, int32_t dst, ElementType type, int64_t bytes) {
  int64_t n = g.size;
  int64_t pieces = std::clamp<int64_t>(bytes / (2 * n * kPieceBytes), 1, kMostPieces);
  int64_t piece = bytes / kUnit / (2 * n * pieces) * kUnit;  // bytes
  int64_t covered = piece * 2 * n * pieces;
  for (int d = 0; d < 2; ++d)
    if (g.ring_ready[d] < 0)
      for (int* sem : {&g.ring_ready[d], &g.ring_recv[d], &g.ring_send[d]}) *sem = out_.num_sems++;

  // The adding kernel works on pieces as plain rows of 128 lanes.
  LoopSpec spec;
  spec.shape = {piece * isa::packingOf(type) / (4 * 128), 128};
  std::vector<ExprNode> body;
  auto combined = regionExpr(m_.op(id).regions[0], body);
  if (!combined) return combined.takeError();
  spec.inputs = {{type, spec.shape, false}, {type, spec.shape, false}};
  spec.nodes = std::move(body);
  spec.outputs = *combined;
  auto kernel = loopKernel(spec, "ring_add");
  if (!kernel) return kernel.takeError();
  int32_t slots = tempBuffer(ElementType::kU32, {2 * (n - 1) * pieces * piece / 512, 128});
  int32_t call_locs = static_cast<int32_t>(out_.call_locs.size());
  out_.call_locs.push_back({internLoc(locOf(id))});

  using isa::Opcode;
  auto word = [&](int w) { return b_.pseudo(llo::PseudoKind::kDeviceWord, w); };
  auto reg = [](llo::S s) { return llo::Scalar{true, s.id, 0}; };
  auto imm = [](int64_t v) { return llo::Scalar{false, 0, v}; };
  auto wrapped = [&](llo::S x) { return b_.s(Opcode::sremu, {x, n}); };
  llo::S r = word(g.ring_rank_word);
  llo::S rank[2] = {r, wrapped(b_.s(Opcode::ssub, {b_.imm(n), r}))};
  llo::S next[2] = {word(g.ring_next_word), word(g.ring_prev_word)};
  llo::S before[2] = {next[1], next[0]};
  for (int d = 0; d < 2; ++d) b_.semSignal(reg(before[d]), g.ring_ready[d], imm(1));
  for (int d = 0; d < 2; ++d) b_.semWait(g.ring_ready[d], imm(1));

  // Byte offset of piece k of chunk x of a direction, and of the slot of step t.
  auto chunkOffset = [&](int d, llo::S x, llo::S k) {
    llo::S row = b_.s(Opcode::sadd, {b_.s(Opcode::smul, {x, pieces}), k});
    return b_.s(Opcode::sadd, {b_.s(Opcode::smul, {row, piece}), d * n * pieces * piece});
  };
  auto slotOffset = [&](int d, llo::S t, llo::S k) {
    llo::S row = b_.s(Opcode::sadd, {b_.s(Opcode::smul, {t, pieces}), k});
    return b_.s(Opcode::sadd, {b_.s(Opcode::smul, {row, piece}), d * (n - 1) * pieces * piece});
  };
  auto send = [&](int d, int32_t from, llo::S from_offset, int32_t to, llo::S to_offset) {
    llo::Dma x;
    x.src.index = from;
    x.src.regs.push_back(from_offset.id);
    x.dst.index = to;
    x.dst.regs.push_back(to_offset.id);
    x.run = piece;
    x.remote = true;
    x.device = reg(next[d]);
    x.src_sem = g.ring_send[d];
    x.dst_sem = g.ring_recv[d];
    b_.dma(std::move(x));
  };
  auto add = [&](int d, llo::S x, llo::S slot, llo::S k, int32_t out, llo::S out_offset) {
    std::vector<llo::CallArg> args = {bufferArg(slots, reg(slot)), bufferArg(src, reg(chunkOffset(d, x, k))), bufferArg(out, reg(out_offset))};
    b_.call(*kernel, std::move(args), call_locs);
  };
  llo::S zero = b_.imm(0);
  b_.loop(pieces, [&](llo::S k) {
    for (int d = 0; d < 2; ++d) send(d, src, chunkOffset(d, rank[d], k), slots, slotOffset(d, zero, k));
  });
  auto receiveAdd = [&](llo::S t, bool last) {
    b_.loop(pieces, [&](llo::S k) {
      for (int d = 0; d < 2; ++d) {
        llo::S x = wrapped(b_.s(Opcode::ssub, {b_.s(Opcode::sadd, {rank[d], n - 1}), t}));
        llo::S slot = slotOffset(d, t, k), chunk = chunkOffset(d, x, k);
        b_.semWait(g.ring_recv[d], imm(piece));
        add(d, x, slot, k, last ? dst : slots, last ? chunk : slot);
        if (last) send(d, dst, chunk, dst, chunk);
        else send(d, slots, slot, slots, slotOffset(d, b_.s(Opcode::sadd, {t, 1}), k));
      }
    });
  };
  if (n > 2) b_.loop(n - 2, [&](llo::S t) { receiveAdd(t, false); });
  receiveAdd(b_.imm(n - 2), true);
  auto receive = [&](llo::S t, bool last) {
    b_.loop(pieces, [&](llo::S k) {
      for (int d = 0; d < 2; ++d) {
        b_.semWait(g.ring_recv[d], imm(piece));
        if (last) continue;
        llo::S y = wrapped(b_.s(Opcode::ssub, {b_.s(Opcode::sadd, {rank[d], n}), t}));
        llo::S chunk = chunkOffset(d, y, k);
        send(d, dst, chunk, dst, chunk);
      }
    });
  };
  if (n > 2) b_.loop(n - 2, [&](llo::S t) { receive(t, false); });
  receive(zero, true);
  b_.loop(2 * (n - 1) * pieces, [&](llo::S) {
    for (int d = 0; d < 2; ++d) b_.semWait(g.ring_send[d], imm(piece));
  });
  out_.required_ici_bytes += static_cast<int64_t>(trips_) * 2 * covered / n * (n - 1);
  if (covered == bytes) return llvm::Error::success();

  // What does not divide goes by direct exchange.
  int64_t left = bytes - covered;
  Dims tail_dims = {left * isa::packingOf(type) / (4 * 128), 128};
  int32_t tail = tempBuffer(type, tail_dims), tail_out = tempBuffer(type, tail_dims);
  int32_t tail_slots = tempBuffer(type, {n, tail_dims[0], tail_dims[1]});
  flatCopy(src, tail, left, covered, 0);
  exchange(g, {{tail, true, tail_slots, left}});
  if (auto err = combineSlots(id, m_.op(id).regions[0], tail_slots, n, type, tail_dims, tail_out)) return err;
  flatCopy(tail_out, dst, left, 0, covered);
  return llvm::Error::success();
}

}  // namespace tpu::lower
