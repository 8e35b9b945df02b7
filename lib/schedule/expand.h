// Structured llo code to a control-flow graph: loops, branches, calls and transfers become machine
// instructions; pseudo values become what they stand for.
#pragma once
#include <map>
#include <vector>

#include "context.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "func_builder.h"

namespace tpu::schedule {

/// Which function a call goes to: a kernel with the companions that its tile loop carries.
struct Callee {
  int32_t kernel = 0;
  std::vector<int32_t> companions;
  friend auto operator<=>(const Callee&, const Callee&) = default;
};

/// Functions by callee, in order of first call; the driver is function 0.
struct Callees {
  std::map<Callee, int32_t> index;
  std::vector<Callee> order;       // function i + 1
  std::vector<int32_t> call_locs;  // of the first call
  int32_t functionOf(const Callee& callee, int32_t locs);
};

/// Values of a kernel's own pseudo registers; a driver has none.
struct KernelValues {
  const llo::Kernel* kernel = nullptr;
  std::vector<llo::Arg> grid, blocks, scratch;
  llvm::function_ref<void()> companions;  // appends a step of each
};

class Expander {
 public:
  Expander(Context& ctx, FuncBuilder& builder, Callees* callees, const KernelValues* values)
      : ctx_(ctx), b_(builder), callees_(callees), values_(values) {}
  /// Appends all of `code`. Its registers and units become new ones of the function; op slots grow by
  /// op_base.
  void run(const llo::Code& code, uint32_t op_base);
  /// The function's register for a predicate register of the code run last.
  llo::P pred(int32_t reg) const { return {reg + base_[3]}; }

 private:
  void block(const llo::Block& block);
  void stmt(const llo::Stmt& s);
  void insn(const llo::Stmt& s);
  void pseudo(const llo::Stmt& s);
  void loop(const llo::Stmt& s);
  void whileLoop(const llo::Stmt& s);
  void branch(const llo::Stmt& s);
  void dma(const llo::Dma& d);
  void call(const llo::Stmt& s);
  bool alwaysPositive(const llo::Scalar& s) const;
  llo::Arg semaphore(const llo::Stmt& s);
  void patchSemaphores(const llo::Dma& d, int64_t descriptor);
  void drain(const llo::Companion& companion);
  void callArg(const llo::CallArg& arg, llo::KernelParam::Kind kind, int64_t* word);
  void patchPlace(const llo::Place& place, llo::S* row, llo::S* offset);
  void storeWord(int64_t address, llo::Arg value);
  llo::S reg(int32_t virt) const { return {virt + base_[0]}; }
  llo::Arg scalar(const llo::Scalar& s) const;
  llo::S asReg(llo::Arg value);
  void setBase(llo::S r, int32_t object);

  Context& ctx_;
  FuncBuilder& b_;
  Callees* callees_;
  const KernelValues* values_;
  const llo::Code* code_ = nullptr;
  std::vector<char> positive_;  // by scalar register of code_: only ever set to positive constants
  int32_t base_[kNumClasses] = {0, 0, 0, 0};
  int32_t unit_base_[2] = {0, 0};  // mxu, xlu
  uint32_t op_base_ = 0;
};

/// Adds the lines of code that becomes part of a function; its op slots grow by the result.
uint32_t appendLocs(Func& func, const llo::Code& code);

/// First parameter word of each parameter, and the number of words at the end.
std::vector<int64_t> paramWords(const llo::Kernel& kernel);

}  // namespace tpu::schedule
