// Loads, stores and packings of units.
#include "tile_io.h"

namespace tpu::lower::emit {
namespace {

bool isByte(ElementType t) { return t == ElementType::kPred || elementBits(t) == 8; }

// Sublanes [first, first + n) as a mask immediate.
int sublaneMask(int first, int n) { return ((1 << n) - 1) << first; }

V signExtend(Vec& e, V x, uint32_t bits) { return sra(I{&e, x} << (32 - bits), 32 - bits).v; }

}  // namespace

V extractLow(Vec& e, ElementType type, V words) {
  const I w{&e, words};
  if (type == ElementType::kBF16) return (w << 16u).v;
  if (type == ElementType::kPred) return (w & 0xffu).v;
  const uint32_t bits = static_cast<uint32_t>(elementBits(type));
  if (bits == 32) return words;
  return isSigned(type) ? signExtend(e, words, bits) : (w & ((1u << bits) - 1)).v;
}

V unpack(Vec& e, ElementType type, Packed packed, V narrow, int sub) {
  if (isa::packingOf(type) == 1) return narrow;
  if (packed == Packed::kLow) return extractLow(e, type, narrow);
  if (packed == Packed::kSpread) {
    const I w{&e, narrow};
    const I halves = (w & 0xffu) | ((w & 0xff00u) << 8u);
    const V x = e.withImm(Opcode::vunpack_u16, halves.v, sub);
    return isSigned(type) ? signExtend(e, x, 8) : x;
  }
  if (type == ElementType::kBF16) return e.withImm(Opcode::vunpack_bf16, narrow, sub);
  if (isByte(type)) return e.withImm(isSigned(type) ? Opcode::vunpack_s8 : Opcode::vunpack_u8, narrow, sub);
  return e.withImm(isSigned(type) ? Opcode::vunpack_s16 : Opcode::vunpack_u16, narrow, sub);
}

V pack(Vec& e, ElementType type, Packed packed, llvm::ArrayRef<V> subs) {
  if (isa::packingOf(type) == 1) return subs[0];
  const auto sub = [&](size_t i) { return i < subs.size() ? subs[i] : subs.back(); };
  if (packed == Packed::kLow) {
    const I w{&e, subs[0]};
    if (type == ElementType::kBF16) return (asI(roundBf16({&e, subs[0]})) >> 16u).v;
    return (w & (isByte(type) ? 0xffu : 0xffffu)).v;
  }
  if (packed == Packed::kSpread) {
    const I halves{&e, e.binary(Opcode::vpack_b16, sub(0), sub(1))};
    return ((halves & 0xffu) | ((halves >> 8u) & 0xff00u)).v;
  }
  if (type == ElementType::kBF16) return e.binary(Opcode::vpack_bf16, sub(0), sub(1));
  const V low = e.binary(Opcode::vpack_b16, sub(0), sub(1));
  if (!isByte(type)) return low;
  return e.binary(Opcode::vpack_b8, low, subs.size() > 2 ? e.binary(Opcode::vpack_b16, sub(2), sub(3)) : low);
}

int subRegisters(const TileSpace& space, const TiledArray& a) {
  if (a.packing == 1 || a.packed == Packed::kLow) return 1;
  if (a.packed == Packed::kSpread) return space.word_tile_rows;
  return a.packing;
}

V UnitLoader::load(int j) {
  V& v = wide_[j];
  if (v.id >= 0) return v;
  if (array_.row_broadcast) v = loadRowBroadcast(j);
  else if (array_.col_broadcast) v = loadColumn(j);
  else v = loadFull(j);
  return v;
}

V UnitLoader::narrowAt(int slot, int64_t offset) {
  V& v = narrow_[slot];
  if (v.id < 0) v = e_.code().v(Opcode::vld, {spot_.at(offset)});
  return v;
}

// Where 32-bit register j of a unit stands: narrow register, its offset, and which part of it.
struct Position {
  int narrow, sub;
  int64_t offset;
};
static Position positionOf(const TileSpace& space, const TiledArray& a, int j) {
  const int subs = subRegisters(space, a);
  if (space.word_tile_rows < 8) return {j / subs, j % subs, j / subs * kRegisterBytes};
  const int row = j / space.H, col = j % space.H;
  const int tile_rows = a.tile_rows / 8, tiles = a.packing / tile_rows;  // row and column tiles of a narrow register
  const int r = row / tile_rows, c = col / tiles;
  return {r * (space.H / tiles) + c, col % tiles * tile_rows + row % tile_rows,
          (r * a.vmem_col_tiles + c * tiles) * a.tile_bytes};
}

V UnitLoader::loadFull(int j) {
  const Position p = positionOf(space_, array_, j);
  return unpack(e_, array_.type, array_.packed, narrowAt(p.narrow, p.offset), p.sub);
}

// One row of the array for all rows: a word row per column tile, also where both dimensions are broadcast.
V UnitLoader::loadRowBroadcast(int j) {
  llo::CodeBuilder& b = e_.code();
  const int per = space_.tilesPerRegister(), first = space_.word_tile_rows < 8 ? j * per : j % space_.H;
  const int slot = array_.col_broadcast ? 0 : first;
  V& words = narrow_[slot];
  if (words.id < 0) {
    if (array_.col_broadcast || per == 1) {
      words = b.v(Opcode::vld_strided, {spot_.at(array_.col_broadcast ? 0 : first * kRowBytes), 0, 0xff});
    } else {
      for (int g = 0; g < per; ++g) {
        const V part = b.v(Opcode::vld_strided, {spot_.at((first + g) * kRowBytes), 0,
                                                 sublaneMask(g * space_.word_tile_rows, space_.word_tile_rows)});
        words = g == 0 ? part : e_.binary(Opcode::vor, words, part);
      }
    }
    words = extractLow(e_, array_.type, words);
    if (array_.col_broadcast) words = e_.xlu(Opcode::vbcast_lane, words, 0);
  }
  return words;
}

// One column for all columns.
V UnitLoader::loadColumn(int j) {
  llo::CodeBuilder& b = e_.code();
  const int word_rows = space_.word_tile_rows;
  const int row = word_rows < 8 ? 0 : j / space_.H;
  const int tile_rows = std::max(1, array_.tile_rows / 8);  // row tiles of 8 in a tile of the array
  V& narrow = narrow_[row / tile_rows];
  const int64_t offset = row / tile_rows * array_.tile_bytes;
  if (narrow.id < 0)
    narrow = array_.tile_bytes == kRegisterBytes
                 ? b.v(Opcode::vld, {spot_.at(offset)})
                 : b.v(Opcode::vld_strided, {spot_.at(offset), 1, sublaneMask(0, static_cast<int>(array_.tile_bytes / kRowBytes))});
  V& column = wide_[word_rows < 8 ? 0 : row * space_.H];
  if (column.id >= 0) return column;
  V x = unpack(e_, array_.type, array_.packed, narrow, row % tile_rows);
  // Few rows: repeated for every column tile of the register. What the load left out is zero.
  for (int r = word_rows; r < 8; r *= 2) x = e_.binary(Opcode::vor, x, e_.withImm(Opcode::vrot_sublane, x, r));
  column = e_.xlu(Opcode::vbcast_lane, x, 0);
  return column;
}

void storeUnit(Vec& e, const TileSpace& space, const TiledArray& a, Spot spot, llvm::ArrayRef<V> values) {
  const int subs = subRegisters(space, a);
  const int count = static_cast<int>(values.size());
  std::vector<llvm::SmallVector<V, 4>> groups(count / subs);
  std::vector<int64_t> offsets(count / subs);
  for (llvm::SmallVector<V, 4>& g : groups) g.resize(subs);
  for (int j = 0; j < count; ++j) {
    const Position p = positionOf(space, a, j);
    groups[p.narrow][p.sub] = values[j];
    offsets[p.narrow] = p.offset;
  }
  for (size_t g = 0; g < groups.size(); ++g)
    e.code().emit(Opcode::vst, {spot.at(offsets[g]), pack(e, a.type, a.packed, groups[g])});
}

}  // namespace tpu::lower::emit
