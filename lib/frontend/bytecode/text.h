// Attributes and types of a bytecode file as the compiler would print them: what the text parser keeps as
// text is kept in the same form here.
#pragma once
#include "entries.h"
#include "llvm/Support/raw_ostream.h"

namespace tpu::frontend::bytecode {

class Text {
 public:
  explicit Text(Entries& entries) : e_(entries) {}

  /// Empty where something in it is damaged or it is too large (the fault is set then).
  std::string attr(uint32_t row);
  std::string type(uint32_t row);
  /// "a = 1 : i32, b" in the order of the file.
  std::string dict(uint32_t row);
  /// A name as it stands in front of " = ": in quotes where it is no plain word.
  static std::string attrName(llvm::StringRef name);
  /// "{"x", "y":(1)2}"
  std::string axes(llvm::ArrayRef<uint64_t> rows);
  /// The text of a string or symbol, none for all else.
  std::optional<llvm::StringRef> string(uint32_t row);

 private:
  void print(uint32_t row);
  void printType(uint32_t row);
  void printDict(const AttrNode& node);
  void printElements(const AttrNode& node);
  void printElement(uint32_t type, const uint8_t* bytes);
  void printRule(const AttrNode& node);
  void printMappings(llvm::ArrayRef<uint64_t> rows);
  void printFactors(llvm::StringRef name, llvm::ArrayRef<uint64_t> factors);
  void printDim(const AttrNode& dim);
  void printAxis(uint32_t row);
  void printAxes(llvm::ArrayRef<uint64_t> rows);
  void printSharding(const AttrNode& node);
  void printQuantized(const TypeNode& node);
  void quoted(llvm::StringRef text);
  bool enter(uint64_t offset);
  std::string take();

  Entries& e_;
  std::string out_;
  llvm::raw_string_ostream os_{out_};
  int depth_ = 0;
  size_t all_ = 0;  // of the texts that were taken
};

}  // namespace tpu::frontend::bytecode
