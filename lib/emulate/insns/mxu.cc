// Matrix units. A vmatmul only files its rows; products are computed when a pop needs one of them or when the
// weights change, many rows at once. The order of additions of an output is that of one chain over k in any
// case.
//
// Integers are multiplied as f32: 256 products of 8-bit numbers stay below 2^24, so every partial sum is
// exact.
#include <algorithm>
#include <bit>
#include <cstring>

#include "exec.h"
#include "flow.h"

namespace tpu::emulate {
namespace {

// Definedness of a register's elements, as flags per row and lane of the unpacked form.
void elementShadow(isa::Opcode op, const uint32_t* shadow, uint8_t* out) {
  const int rows = isa::mxuRows(op), per_word = rows / 8, bits = 32 / per_word;
  const uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
  for (int r = 0; r < rows; ++r)
    for (int l = 0; l < 128; ++l)
      out[r * 128 + l] = (shadow[r / per_word * 128 + l] >> (r % per_word * bits) & mask) != 0;
}

template <bool kStrict>
void pushWeights(Core& c, const Op& op) {
  Mxu& m = c.mxu[op.unit];
  Mxu::Stage& stage = m.stage[op.small[0]];
  if (!stage.pushed || stage.pushed.use_count() > 1 || stage.pushed->opcode() != op.opcode)
    stage.pushed = std::make_shared<PushedWeights>(op.opcode, m.side, std::move(stage.pushed));
  stage.pushed->push(op.small[1], op.small[2], c.v[op.a].w);
  if constexpr (kStrict) {
    const int n = isa::mxuRows(op.opcode), first = op.small[1] * n;
    const Lanes lanes = lanesOf(m.side, op.small[2]);
    const bool transposed = isTransposed(op.opcode);
    stage.undefined.resize(m.side);
    uint8_t undefined[kMaxOperandRows * 128];
    elementShadow(op.opcode, c.v_shadow[op.a].w, undefined);
    for (int r = 0; r < n; ++r) {
      // Row 0 of a matrix starts the column's record anew.
      for (int l = 0; l < lanes.count; ++l) {
        const uint8_t bad = undefined[r * 128 + lanes.first + l];
        const int column = transposed ? first + r : lanes.at + l;
        const int k = transposed ? lanes.at + l : first + r;
        stage.undefined[column] = k == 0 ? bad : stage.undefined[column] | bad;
      }
    }
  }
}

// Scratch of a thread, so that matrix units need not bring theirs into the host's caches.
float* scratch(std::vector<Vector>& room, size_t floats) {
  if (room.size() < vectorsOf(floats)) room.resize(vectorsOf(floats));
  return floatsOf(room);
}

// The rows gathered as f32.
const float* gatheredRows(const Mxu& m) {
  static thread_local std::vector<Vector> room;
  float* rows = scratch(room, (static_cast<size_t>(m.rows) + kMaxOperandRows) * m.side);
  float* to = rows;
  for (const Mxu::Given& g : m.given) {
    const int n = operandRows(g.opcode, g.value.w, lanesOf(m.side, g.panel), m.side, to);
    if (m.panels == 1 || g.panel + 1 == m.panels) to += n * m.side;
  }
  return rows;
}

// How many of the columns matter: zeros at the ends of all rows leave a chain that began at 0 as it is, unless they
// meet an infinity or a NaN. Arrays narrower than the unit are filled up with such zeros.
int64_t depthOf(const Mxu& m, const float* rows, const PushedWeights::Matrix& weights) {
  constexpr int kBlock = 16;
  if (!weights.finite) return m.side;
  for (int k = m.side; k > 0; k -= kBlock) {
    uint32_t bits = 0;
    for (int r = 0; r < m.rows; ++r)
      for (int i = 0; i < kBlock; ++i) bits |= std::bit_cast<uint32_t>(rows[r * m.side + k - kBlock + i]);
    if (bits << 1) return k;
  }
  return 0;
}

// Their products, row by row.
float* products(const Mxu& m, int unit) {
  static thread_local std::vector<Vector> room;
  const size_t n = static_cast<size_t>(m.rows) * m.side;
  float* product = scratch(room, n);
  std::fill_n(product, n, 0.0f);
  const float* lhs = gatheredRows(m);
  const PushedWeights::Matrix& weights = m.weights->matrix(unit);
  fmaGemm(lhs, m.side, weights.rhs, product, m.side, m.rows, depthOf(m, lhs, weights));
  return product;
}

// Multiplies the rows gathered and delivers the results: into the FIFO, or added to the accumulators.
void toFifo(Mxu& m, int unit, Fifo& f, bool strict) {
  const int entries = m.rows / 8 * m.panels;
  if (m.panels == 1) {
    // Entries are 8 rows of 128 words one after another: contiguous up to the end of the ring.
    const float* lhs = gatheredRows(m);
    const PushedWeights::Matrix& weights = m.weights->matrix(unit);
    const int64_t depth = depthOf(m, lhs, weights);
    int done = 0;
    while (done < entries) {
      const int slot = f.slot(m.computed + done);
      const int n = std::min(entries - done, f.depth - slot);
      float* out = reinterpret_cast<float*>(f.value[slot].w);
      std::memset(out, 0, static_cast<size_t>(n) * sizeof(Vector));
      fmaGemm(lhs + static_cast<size_t>(done) * 8 * m.side, m.side, weights.rhs, out, 128, int64_t{n} * 8, depth);
      done += n;
    }
  } else {
    const float* product = products(m, unit);
    for (int e = 0; e < entries; ++e) {
      const int group = e / m.panels, panel = e % m.panels;
      uint32_t* to = f.value[f.slot(m.computed + e)].w;
      for (int r = 0; r < 8; ++r)
        std::memcpy(to + r * 128, product + static_cast<size_t>(group * 8 + r) * m.side + panel * 128, 512);
    }
  }
  for (int e = 0; m.lhs_integer && e < entries; ++e) {
    Vector& x = f.value[f.slot(m.computed + e)];
    for (uint32_t& w : x.w) w = static_cast<uint32_t>(static_cast<int32_t>(std::bit_cast<float>(w)));
  }
  for (int e = 0; strict && e < entries; ++e) {
    const int group = e / m.panels, panel = e % m.panels;
    uint32_t* to = f.shadow[f.slot(m.computed + e)].w;
    for (int r = 0; r < 8; ++r)
      for (int l = 0; l < 128; ++l) {
        const int column = panel * 128 + l;
        const bool bad = column >= m.side || m.undefined_columns[column] || m.undefined_rows[group * 8 + r];
        to[r * 128 + l] = bad ? ~0u : 0;
      }
  }
  m.computed += entries;
}

void toAccumulators(Mxu& m, int unit, bool strict) {
  const float* product = products(m, unit);
  for (int group = 0; group < m.rows / 8; ++group)
    for (int panel = 0; panel < m.panels; ++panel) {
      Vector& acc = m.acc[m.targets[group] + panel];
      for (int r = 0; r < 8; ++r)
        for (int l = 0; l < std::min(m.side, 128); ++l) {
          uint32_t& w = acc.w[r * 128 + l];
          const float x = product[static_cast<size_t>(group * 8 + r) * m.side + panel * 128 + l];
          w = m.lhs_integer ? w + static_cast<uint32_t>(static_cast<int32_t>(x))
                            : std::bit_cast<uint32_t>(std::bit_cast<float>(w) + x);
          if (strict && (m.undefined_columns[panel * 128 + l] || m.undefined_rows[group * 8 + r]))
            m.acc_shadow[m.targets[group] + panel].w[r * 128 + l] = ~0u;
        }
    }
  m.targets.clear();
}

// What remains when the complete row sets are done: the lane panels of the one that has only begun.
void keepBegunRows(Mxu& m) {
  const int first = static_cast<int>(m.given.size()) - m.panels_given;
  m.given.erase(m.given.begin(), m.given.begin() + first);
  if (m.panels_given && !m.undefined_rows.empty())
    m.undefined_rows.erase(m.undefined_rows.begin(), m.undefined_rows.begin() + m.rows);
  m.rows = 0;
}

template <bool kStrict>
void multiply(Core& c, int unit) {
  Mxu& m = c.mxu[unit];
  if (m.rows == 0) return;
  if (m.acc.empty()) {
    toFifo(m, unit, c.fifos[kMrfFifo + unit], kStrict);
  } else {
    toAccumulators(m, unit, kStrict);
  }
  keepBegunRows(m);
}

template <bool kStrict>
bool gather(Core& c, const Op& op, int* n) {
  Mxu& m = c.mxu[op.unit];
  const bool integer = mxuInteger(op.opcode);
  if (!m.weights || mxuInteger(m.weights->opcode()) != integer) {
    c.fail(
        op, tpu::Code::kEmuMatrixUnit,
        m.weights ? "weights and rows are not both integers or both floats" : "no weights have been latched");
    return false;
  }
  if (m.rows > 0 && m.lhs_integer != integer) multiply<kStrict>(c, op.unit);
  m.lhs_integer = integer;
  *n = isa::mxuRows(op.opcode);
  const int panel = op.small[0];
  const int before = m.panels_given;
  if (m.panels > 1 && before != panel) {
    c.fail(op, tpu::Code::kEmuMatrixUnit,
           "lane panel " + llvm::Twine(panel) + " where panel " + llvm::Twine(before) + " is expected");
    return false;
  }
  m.given.emplace_back(c.v[op.a], op.opcode, static_cast<uint8_t>(panel));
  if constexpr (kStrict) {
    const Lanes lanes = lanesOf(m.side, panel);
    m.undefined_rows.resize(m.rows + *n);
    uint8_t undefined[kMaxOperandRows * 128];
    elementShadow(op.opcode, c.v_shadow[op.a].w, undefined);
    for (int r = 0; r < *n; ++r) {
      const uint8_t* row = undefined + r * 128 + lanes.first;
      const bool bad = std::any_of(row, row + lanes.count, [](uint8_t x) { return x != 0; });
      m.undefined_rows[m.rows + r] = bad || (m.panels > 1 && panel > 0 && m.undefined_rows[m.rows + r]);
    }
  }
  c.countRows(op);
  m.panels_given = panel + 1 == m.panels || m.panels == 1 ? 0 : panel + 1;
  return true;
}

template <bool kStrict>
void matmul(Core& c, const Op& op) {
  int n = 0;
  if (!gather<kStrict>(c, op, &n)) return;
  Mxu& m = c.mxu[op.unit];
  if (m.panels_given) return;
  if (c.push(op, op.push_fifo, op.entries) < 0) return;
  m.rows += n;
}

template <bool kStrict>
void matmulAcc(Core& c, const Op& op) {
  if constexpr (kStrict) {
    if (op.sreg != kNoReg && c.s_shadow[op.sreg])
      return c.fail(op, tpu::Code::kEmuUndefined, "the accumulator's address is undefined");
  }
  int n = 0;
  if (!gather<kStrict>(c, op, &n)) return;
  Mxu& m = c.mxu[op.unit];
  if (m.panels_given) return;
  if (!c.accumulate(op)) return;
  const uint32_t first = c.scalar(op);
  for (int g = 0; g < n / 8; ++g) m.targets.push_back(static_cast<uint16_t>(first + g * m.panels));
  m.rows += n;
  if (m.rows >= kMaxGatheredRows) multiply<kStrict>(c, op.unit);
}

template <bool kStrict>
int popResult(Core& c, const Op& op) {
  Mxu& m = c.mxu[op.unit];
  if (m.computed == 0) multiply<kStrict>(c, op.unit);
  --m.computed;
  return c.pop(op.pop_fifo);
}

}  // namespace

TPU_EXEC(vlatch) {
  multiply<kStrict>(c, op.unit);
  Mxu& m = c.mxu[op.unit];
  Mxu::Stage& stage = m.stage[op.small[0]];
  if (!stage.pushed)
    return c.fail(op, tpu::Code::kEmuMatrixUnit,
                  "nothing was pushed into staging register " + llvm::Twine(op.small[0]));
  if (m.panels_given)
    return c.fail(op, tpu::Code::kEmuMatrixUnit, "weights change between the lane panels of a row set");
  m.weights = stage.pushed;
  if constexpr (kStrict) m.undefined_columns = stage.undefined;
}

#define TPU_MXU_ROWS(type)                                    \
  TPU_EXEC(vmatpush_##type) { pushWeights<kStrict>(c, op); }  \
  TPU_EXEC(vmatpusht_##type) { pushWeights<kStrict>(c, op); } \
  TPU_EXEC(vmatmul_##type) { matmul<kStrict>(c, op); }        \
  TPU_EXEC(vmatmul_acc_##type) { matmulAcc<kStrict>(c, op); }
TPU_MXU_ROWS(f32)
TPU_MXU_ROWS(bf16)
TPU_MXU_ROWS(s8)
TPU_MXU_ROWS(u8)
TPU_MXU_ROWS(f8e4m3fn)
TPU_MXU_ROWS(f8e5m2)

TPU_EXEC(vpop_mrf) {
  const int slot = popResult<kStrict>(c, op);
  const Fifo& f = c.fifos[op.pop_fifo];
  copyRegister(c.v[op.d].w, f.value[slot].w);
  if constexpr (kStrict) copyRegister(c.v_shadow[op.d].w, f.shadow[slot].w);
}
TPU_EXEC(vpop_mrf_half) {
  const int slot = popResult<kStrict>(c, op);
  const Fifo& f = c.fifos[op.pop_fifo];
  const int half = op.small[0] * 64;
  for (int s = 0; s < 8; ++s) {
    copyWords(c.v[op.d].w + s * 128 + half, f.value[slot].w + s * 128, 64);
    if constexpr (kStrict) copyWords(c.v_shadow[op.d].w + s * 128 + half, f.shadow[slot].w + s * 128, 64);
  }
}
TPU_EXEC(vpop_mrb) {
  if constexpr (kStrict) {
    if (op.sreg != kNoReg && c.s_shadow[op.sreg])
      return c.fail(op, tpu::Code::kEmuUndefined, "the accumulator's address is undefined");
  }
  multiply<kStrict>(c, op.unit);
  Mxu& m = c.mxu[op.unit];
  const uint32_t entry = c.scalar(op);
  copyRegister(c.v[op.d].w, m.acc[entry].w);
  m.acc[entry] = Vector{};
  if constexpr (kStrict) {
    c.v_shadow[op.d] = m.acc_shadow[entry];
    m.acc_shadow[entry] = Vector{};
  }
}

}  // namespace tpu::emulate
