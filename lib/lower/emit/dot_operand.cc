// Operand forms of matrix products: conversion into register form, clearing of K remainders, results in their type.
#include "dot_body.h"
#include "tile_io.h"

namespace tpu::lower::emit {
namespace {

int sublaneMask(int64_t rows) { return (1 << rows) - 1; }

// Registers of 8 rows x 128 columns as f32 from a block in its memory layout. Absent rows are zero.
class RowTiles {
 public:
  RowTiles(Vec& e, const DotOperand& o) : e_(e), o_(o) {
    packed_ = o.packing == 1 || o.rows > 1 ? Packed::kRows : Packed::kLow;
    if (o.packing == 4 && o.rows == 2) packed_ = Packed::kSpread;
  }
  /// Row tile `i` (8 rows) relative to the tile at `at`.
  F load(Addr at, int i) {
    const int per = std::max(1, o_.tile_rows / 8);
    const int64_t offset = at.offset + i / per * o_.col_tiles() * o_.tile_bytes;
    if (narrow_.id < 0 || offset != narrow_offset_) {
      narrow_ = loadTile(e_, o_, {at.base, offset});
      narrow_offset_ = offset;
    }
    const V v = unpack(e_, o_.type, packed_, narrow_, i % per);
    if (isFloat(o_.type)) return {&e_, v};
    return fromS32({&e_, v});
  }
  static V loadTile(Vec& e, const DotOperand& o, Addr at) {
    if (o.tile_bytes == kRegisterBytes) return e.code().v(Opcode::vld, {at});
    return e.code().v(Opcode::vld_strided, {at, 1, sublaneMask(o.tile_bytes / kRowBytes)});
  }

 private:
  Vec& e_;
  const DotOperand& o_;
  Packed packed_ = Packed::kRows;
  V narrow_;
  int64_t narrow_offset_ = -1;
};

// x as `parts` values of bf16 precision whose sum it is. All but the last are cut off, so none overflows.
llvm::SmallVector<F, 3> splitParts(F x, int parts) {
  llvm::SmallVector<F, 3> out;
  for (int i = 0; i + 1 < parts; ++i) {
    const F top = asF(asI(x) & 0xffff0000u);
    out.push_back(top);
    x = select(eq(x, top), 0.0f, x - top);  // infinity has no rest
  }
  out.push_back(x);
  return out;
}

}  // namespace

void prepareOperand(Vec& e, const DotPlan& p, const DotOperand& o, S source, S area) {
  llo::CodeBuilder& b = e.code();
  // One step makes whole source tiles and whole registers.
  const int64_t step_rows = std::max<int64_t>(o.tile_rows, p.mode.rows);
  const int64_t steps = ceilDiv(o.block_row_tiles() * o.tile_rows, step_rows);
  const int64_t source_step = step_rows / o.tile_rows * o.col_tiles() * o.tile_bytes;
  const int64_t groups = step_rows / p.mode.rows, area_step = groups * o.col_tiles() * kRegisterBytes;
  const int row_tiles = std::max(1, static_cast<int>(step_rows / 8));
  const int present = std::max(1, static_cast<int>(std::min<int64_t>(step_rows, o.block_row_tiles() * o.tile_rows) / 8));
  const auto tile = [&](S from, S to) {
    if (o.type == p.mode.type && o.parts == 1) {  // few rows: the same words, the rest zero
      b.emit(Opcode::vst, {Addr{to, 0}, RowTiles::loadTile(e, o, {from, 0})});
      return;
    }
    RowTiles rows(e, o);
    std::vector<llvm::SmallVector<F, 3>> parts;
    for (int i = 0; i < row_tiles; ++i) {
      const F x = i < present ? rows.load({from, 0}, i) : constant(&e, 0.0f);
      parts.push_back(splitParts(x, o.parts));
    }
    for (int part = 0; part < o.parts; ++part)
      for (int64_t g = 0; g < groups; ++g) {
        const size_t first = static_cast<size_t>(g * (p.mode.rows / 8));
        const V v = p.mode.type == ElementType::kF32
                        ? parts[first][part].v
                        : e.binary(Opcode::vpack_bf16, parts[first][part].v, parts[first + 1][part].v);
        b.emit(Opcode::vst, {Addr{to, part * partBytes(p, o) + g * o.col_tiles() * kRegisterBytes}, v});
      }
  };
  b.loop(steps, [&](S r) {
    const S from = b.s(Opcode::sadd, {source, b.s(Opcode::smul, {r, source_step})});
    const S to = b.s(Opcode::sadd, {area, b.s(Opcode::smul, {r, area_step})});
    b.loop(o.col_tiles(), [&](S c) {
      tile(b.s(Opcode::sadd, {from, b.s(Opcode::smul, {c, o.tile_bytes})}),
           b.s(Opcode::sadd, {to, b.s(Opcode::sshl, {c, 12})}));
    });
  });
}

void clearColumns(Vec& e, const DotPlan& p, const DotOperand& o, S area, int64_t valid) {
  if (valid >= o.block_cols) return;
  llo::CodeBuilder& b = e.code();
  const int64_t first = valid / kLanes, lanes = valid % kLanes;
  const V zero = e.bits(0);
  M beyond;
  if (lanes) beyond = ge(I{&e, e.lane()}, static_cast<uint32_t>(lanes)).m;
  b.loop(areaRowGroups(p, o) * o.parts, [&](S r) {
    const S row = b.s(Opcode::sadd, {area, b.s(Opcode::smul, {r, o.col_tiles() * kRegisterBytes})});
    for (int64_t c = first; c < o.col_tiles(); ++c) {
      const Addr at{row, c * kRegisterBytes};
      if (c == first && lanes) b.emit(Opcode::vst_msk, {at, zero, beyond});
      else b.emit(Opcode::vst, {at, zero});
    }
  });
}

void clearRows(Vec& e, const DotPlan& p, const DotOperand& o, S area, int64_t valid) {
  if (valid >= o.block_rows) return;
  llo::CodeBuilder& b = e.code();
  const int64_t first = valid / p.mode.rows, rows = valid % p.mode.rows;
  const V zero = e.bits(0);
  V keep;
  if (rows) {  // bits of the words whose rows are valid
    const int per = p.mode.rows / 8;
    const int64_t whole = rows / per, rest = rows % per;
    const I sublane{&e, e.sublane()};
    I bits = select(lt(sublane, static_cast<uint32_t>(whole)), 0xffffffffu, 0u);
    if (rest) bits = select(eq(sublane, static_cast<uint32_t>(whole)), (1u << (rest * 32 / per)) - 1, bits);
    keep = bits.v;
  }
  for (int part = 0; part < o.parts; ++part)
    b.loop(o.col_tiles(), [&](S c) {
      const S column = b.s(Opcode::sadd, {area, b.s(Opcode::sshl, {c, 12})});
      for (int64_t g = first; g < areaRowGroups(p, o); ++g) {
        const Addr at{column, part * partBytes(p, o) + g * o.col_tiles() * kRegisterBytes};
        const bool partial = g == first && rows;
        b.emit(Opcode::vst, {at, partial ? e.binary(Opcode::vand, b.v(Opcode::vld, {at}), keep) : zero});
      }
    });
}

void storeResult(Vec& e, const DotPlan& p, S acc, S out) {
  llo::CodeBuilder& b = e.code();
  const DotOperand& o = p.out;
  const int row_tiles = std::max(1, o.tile_rows / 8);
  Packed packed = Packed::kRows;
  if (o.packing > 1 && o.rows == 1) packed = Packed::kLow;
  const int64_t columns = p.bn / kLanes;
  b.loop(o.block_row_tiles(), [&](S r) {
    const S from = b.s(Opcode::sadd, {acc, b.s(Opcode::smul, {r, row_tiles * columns * kRegisterBytes})});
    const S to = b.s(Opcode::sadd, {out, b.s(Opcode::smul, {r, columns * o.tile_bytes})});
    b.loop(columns, [&](S c) {
      const S tile = b.s(Opcode::sadd, {from, b.s(Opcode::sshl, {c, 12})});
      llvm::SmallVector<V, 4> values;
      for (int i = 0; i < row_tiles; ++i) {
        V v = b.v(Opcode::vld, {Addr{tile, i * columns * kRegisterBytes}});
        if (p.integer && isFloat(o.type)) v = fromS32(I{&e, v}).v;
        values.push_back(v);
      }
      const V v = pack(e, o.type, packed, values);
      const Addr at{b.s(Opcode::sadd, {to, b.s(Opcode::smul, {c, o.tile_bytes})}), 0};
      if (o.tile_bytes == kRegisterBytes) b.emit(Opcode::vst, {at, v});
      else b.emit(Opcode::vst_strided, {at, v, 1, sublaneMask(o.tile_bytes / kRowBytes)});
    });
  });
}

}  // namespace tpu::lower::emit
