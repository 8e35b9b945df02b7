// The directives of assembly text that fill the tables of a program.
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "source.h"
#include "tpu/isa/program.h"

namespace tpu::assembly {

class Directives {
 public:
  /// `files_read` (may be null) takes the chip files that .target names.
  Directives(isa::Program* program, llvm::StringRef file, std::vector<std::string>* files_read)
      : p_(*program), file_(file), files_read_(files_read) {}

  /// Handles a line that starts with '.' (the directive) at offset `at`.
  llvm::Error handle(const LogicalLine& line, size_t at);
  /// Inside .chip ... .endchip every line comes here.
  bool inChip() const { return in_chip_; }
  llvm::Error chipLine(const LogicalLine& line);
  /// Fills what was not stated and checks that nothing is left open.
  llvm::Error finish();

  bool autoloc() const { return autoloc_; }

  struct Context;  // directive_context.h

 private:
  llvm::Error target(const Context& c);
  llvm::Error devices(const Context& c);
  llvm::Error deviceOrder(const Context& c);
  llvm::Error option(const Context& c);
  llvm::Error setAutoloc(const Context& c);
  llvm::Error location(const Context& c);
  llvm::Error kernel(const Context& c);
  llvm::Error endKernel(const Context& c);
  llvm::Error argument(const Context& c);
  llvm::Error result(const Context& c);
  llvm::Error port(const Context& c, isa::SignaturePort* port);
  llvm::Error buffer(const Context& c);
  llvm::Error constant(const Context& c);
  llvm::Error words(const Context& c);
  llvm::Error floats(const Context& c);
  llvm::Error fill(const Context& c);
  llvm::Error base64(const Context& c);
  llvm::Error dma(const Context& c);
  llvm::Error deviceTable(const Context& c);
  llvm::Error row(const Context& c);
  llvm::Error memory(const Context& c);
  llvm::Error required(const Context& c);
  void appendWord(uint32_t word);
  void deriveMemory();

  isa::Program& p_;
  llvm::StringRef file_;
  std::vector<std::string>* files_read_;
  bool autoloc_ = true, in_chip_ = false, in_kernel_ = false, memory_stated_ = false;
  bool constant_open_ = false;
  std::string chip_text_;
  Place chip_place_, kernel_place_;
};

}  // namespace tpu::assembly
