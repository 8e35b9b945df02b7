// HLO text as it stands: computations, their instructions, operands and attributes as slices of the text, before anything
// is known of what they mean. Both printed forms are read: the short one, and the long one with '%' before names, types
// before operands and "/*index=5*/" comments.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "../cursor.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "tpu/hlo/module.h"

namespace tpu::frontend::hlo_text {

struct Shape {
  enum Kind : uint8_t { kArray, kTuple, kToken } kind = kArray;
  ElementType element = ElementType::kF32;
  hlo::Dims dims;
  llvm::SmallVector<int64_t, 6> minor_to_major;  // empty: none given, which means descending
  std::vector<Shape> elements;                   // kTuple
};

struct Attribute {
  llvm::StringRef name, value;  // value: balanced text, quotes and braces included
};

struct Instruction {
  llvm::StringRef name, opcode;
  Shape shape;
  llvm::StringRef inside;                        // what stands between the parentheses
  std::vector<llvm::StringRef> operands;         // names
  llvm::SmallVector<Attribute, 4> attributes;
  const char* at = nullptr;
  bool root = false;
  /// The value of an attribute, empty where it is not given.
  llvm::StringRef get(llvm::StringRef name) const;
};

struct Computation {
  llvm::StringRef name;
  bool entry = false;
  std::vector<Instruction> instructions;
  llvm::StringMap<uint32_t> index;
  uint32_t root = 0;
  const char* at = nullptr;
};

struct Text {
  llvm::StringRef name;
  llvm::SmallVector<Attribute, 8> attributes;  // of the module
  std::vector<Computation> computations;
  llvm::StringMap<uint32_t> by_name;
  std::vector<std::string> frames;  // stack_frame_id -> "file.py:12:5"
  llvm::StringRef get(llvm::StringRef name) const;
};

/// Reads all of the text at the cursor; false after an error, which the cursor keeps.
bool readText(Cursor& c, Text& out);

/// A shape at the cursor; also used for the types of literals.
bool readShape(Cursor& c, Shape& out, int depth = 0);

/// "{1,2}" or "1,2" as numbers; false for anything else.
bool readInts(llvm::StringRef text, llvm::SmallVectorImpl<int64_t>& out);
/// The parts of "{a, {b, c}, d}" at the outermost level, trimmed.
llvm::SmallVector<llvm::StringRef, 4> splitList(llvm::StringRef text);
/// Without quotes around it, escapes resolved.
std::string unquoted(llvm::StringRef text);

}  // namespace tpu::frontend::hlo_text
