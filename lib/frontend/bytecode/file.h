// An MLIR bytecode file: its sections, its tables, and its operations as they stand, whatever their dialect.
//
// Version 0 to 6 of the format. Attributes and types are entries of two tables and refer to each other by
// number; an entry is only decoded when something asks for it (attributes.h). Operations form a tree of plain
// rows. Use-list orders say in which order a compiler would find the uses of a value and are skipped.
#pragma once
#include <vector>

#include "bytes.h"
#include "llvm/ADT/SmallVector.h"

namespace tpu::frontend::bytecode {

inline constexpr uint64_t kFormatVersion = 6;  // the newest that is read
inline constexpr uint32_t kNone = ~uint32_t{0};

/// One attribute or type, not decoded.
struct Entry {
  uint32_t dialect = 0;  // row of File::dialects
  bool custom = false;   // the dialect's own coding, else text as the compiler prints it
  llvm::StringRef data;
};

struct OpName {
  std::string name;  // "vhlo.add_v1"
  bool registered = true;
};

struct BlockArg {
  uint32_t value = 0, type = 0, loc = kNone;
};

struct RawRegion {
  std::vector<BlockArg> args;
  std::vector<uint32_t> ops;
};

/// An operation; numbers are rows of the file's tables. Values are numbered through the whole file.
struct RawOp {
  uint32_t name = 0, loc = kNone, attrs = kNone;
  uint32_t properties = kNone;  // a row of File::properties, or of attrs where the op was not registered
  uint64_t offset = 0;
  uint32_t first_result = 0;  // the value of result 0; the others follow
  llvm::SmallVector<uint32_t, 1> result_types;
  llvm::SmallVector<uint32_t, 3> operands;
  llvm::SmallVector<uint32_t, 0> regions;
};

struct File {
  uint64_t version = 0;
  llvm::StringRef producer;
  uint64_t producer_offset = 0;
  std::vector<llvm::StringRef> strings;
  std::vector<llvm::StringRef> dialects;
  std::vector<OpName> op_names;
  std::vector<Entry> attrs, types;
  std::vector<llvm::StringRef> properties;
  std::vector<RawOp> ops;
  std::vector<RawRegion> regions;
  uint32_t num_values = 0;
  uint32_t top = kNone;  // the one op at the top, builtin.module
  llvm::StringRef data;  // of the whole file

  uint64_t offsetOf(llvm::StringRef part) const { return static_cast<uint64_t>(part.data() - data.data()); }
};

/// Reads the header: what the file says about itself, before anything else is believed.
bool readHeader(Bytes& in, File& file);
/// Reads everything behind the header.
bool readSections(Bytes& in, File& file);

}  // namespace tpu::frontend::bytecode
