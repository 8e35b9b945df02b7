// Moves units of arrays between VMEM and 32-bit registers: unpacking, packing, broadcasts.
//
// The registers of a unit are numbered j = row tile * H + column tile; where tiles have fewer than 8 rows a register
// covers several column tiles and there is one row tile.
#pragma once
#include "expr.h"
#include "tile_space.h"

namespace tpu::lower::emit {

/// A place in a block: address register and constant bytes.
struct Spot {
  S base;
  int64_t offset = 0;
  Addr at(int64_t more = 0) const { return {base, offset + more}; }
};

/// Loads from one array at one unit; narrow registers are loaded once.
class UnitLoader {
 public:
  UnitLoader(Vec& e, const TileSpace& space, const TiledArray& array, Spot spot)
      : e_(e), space_(space), array_(array), spot_(spot), narrow_(64, V{}), wide_(64, V{}) {}
  /// 32-bit register j.
  V load(int j);

 private:
  V loadFull(int j);
  V loadRowBroadcast(int j);
  V loadColumn(int j);
  V narrowAt(int slot, int64_t offset);
  Vec& e_;
  const TileSpace& space_;
  const TiledArray& array_;
  Spot spot_;
  std::vector<V> narrow_, wide_;
};

/// Sub-register `sub` of a packed register as 32-bit values.
V unpack(Vec& e, ElementType type, Packed packed, V narrow, int sub);
/// The value in the low bits of every word.
V extractLow(Vec& e, ElementType type, V words);
/// The opposite: a register from its 32-bit sub-registers (missing ones may be left out at the end).
V pack(Vec& e, ElementType type, Packed packed, llvm::ArrayRef<V> subs);
/// 32-bit registers that one narrow register holds.
int subRegisters(const TileSpace& space, const TiledArray& array);

/// Stores a unit: `values` are its 32-bit registers, pred as words 0 and 1.
void storeUnit(Vec& e, const TileSpace& space, const TiledArray& array, Spot spot, llvm::ArrayRef<V> values);

}  // namespace tpu::lower::emit
