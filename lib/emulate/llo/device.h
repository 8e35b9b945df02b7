// One device of an llo run: memories, semaphores, and the code being executed as explicit frames, so that a device can
// stop at a wait and go on later.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "matrix_unit.h"
#include "memory.h"
#include "tpu/emulate/llo_interpreter.h"
#include "tpu/emulate/vector_bodies.h"
#include "tpu/llo/llo.h"

namespace tpu::emulate::llo_run {

struct Frame {
  const llo::Block* block = nullptr;
  size_t pc = 0;
  const llo::Stmt* owner = nullptr;  // the loop, while or if whose block this is
  uint32_t index = 0, trip = 0;      // kLoop
  int which = 0;                     // block of owner
};

struct XposeUnit {
  std::vector<uint32_t> buffer = std::vector<uint32_t>(128 * 128, 0);
};

/// A body of code in execution with its own virtual registers.
struct Context {
  const llo::Code* code = nullptr;
  std::vector<uint32_t> s;
  std::vector<std::unique_ptr<Vector>> v;
  std::vector<std::unique_ptr<Vector>> m;  // words 0 and ~0
  std::vector<uint8_t> p;
  std::vector<Frame> frames;
  std::deque<uint32_t> v2s;
  std::deque<Vector> eup;
  std::vector<std::deque<Vector>> xlu, trf;
  std::vector<XposeUnit> xpose;
  std::vector<std::unique_ptr<MatrixUnit>> mxu;

  // a kernel
  const llo::Kernel* kernel = nullptr;
  const llo::Stmt* call = nullptr;
  std::vector<uint32_t> params;         // words
  std::vector<int64_t> grid;            // current index
  std::vector<int64_t> block_address, block_offset, scratch_address;
  bool has_hook = false;                // companions are stepped by the code itself
  size_t next_companion = 0;            // of this grid step, or hook

  // a companion
  int32_t companion = -1;
  bool drained = false;                 // is run until it is done
  int64_t effects_before = 0;           // Device::effects_ when this step began
};

enum class Progress : uint8_t { kRan, kBlocked, kDone, kIdle /* a drained companion found nothing to do */ };

class Device;
/// What devices share.
struct Pod {
  const llo::Module* module = nullptr;
  const target::Chip* chip = nullptr;
  InterpretOptions options;
  std::vector<std::unique_ptr<Device>> devices;
};

class Device {
 public:
  Device(Pod& pod, int64_t position);

  /// Storage of module buffers; aliases share.
  void placeBuffers();
  int64_t bufferAddress(int32_t buffer) const { return buffer_address_[buffer]; }
  AddressSpace& space(isa::Space space);
  void startDriver();
  /// Puts a kernel on the stack with its parameter words.
  void enterKernel(const llo::Kernel& kernel, std::vector<uint32_t> params, const llo::Stmt* call);
  /// Runs until done or blocked.
  llvm::Expected<Progress> run();

  std::vector<int64_t> sems;

 private:
  struct Spot {  // where a Place lies
    isa::Space space;
    int64_t address;
  };
  Context& top() { return *stack_.back(); }
  std::unique_ptr<Context> makeContext(const llo::Code& code) const;
  llvm::Expected<Progress> step();
  llvm::Expected<Progress> endOfFrame();
  llvm::Expected<Progress> endOfBody();
  llvm::Error startStep();
  llvm::Error finishStep(bool last);
  void stepCompanion(int32_t id, bool drain);
  bool hook(Context& kernel);
  llvm::Error transferBlock(int b, int64_t offset, const std::vector<int64_t>& at);
  llvm::Error execute(const isa::Instruction& insn);
  bool executeVector(const isa::Instruction& insn, Vector& d);
  llvm::Error executeMemory(const isa::Instruction& insn, bool* done);
  llvm::Error executeUnit(const isa::Instruction& insn, bool* done);
  llvm::Error executeMatrix(const isa::Instruction& insn, bool* done);
  uint32_t pseudo(const llo::Stmt& st);
  llvm::Error dma(const llo::Dma& d);
  Spot spotOf(const llo::Place& place);
  llvm::Error semaphore(int32_t index, int32_t plus, int64_t* number) const;
  std::vector<uint32_t> callWords(const llo::Stmt& st);
  uint32_t value(const llo::Scalar& x) { return x.is_reg ? top().s[x.reg] : static_cast<uint32_t>(x.imm); }
  uint32_t scalarOf(const isa::Operand& o) { return o.kind == isa::Operand::kReg ? top().s[o.reg] : static_cast<uint32_t>(o.imm); }
  /// A vector or mask register.
  Vector& vec(const isa::Operand& o);
  int64_t addressOf(const isa::Operand& o) { return static_cast<int32_t>((o.has_base ? top().s[o.reg] : 0) + static_cast<uint32_t>(o.imm)); }
  std::string where() const;
  llvm::Error bad(Code code, const llvm::Twine& text) const;

  Pod& pod_;
  int64_t position_;
  AddressSpace hbm_, vmem_, smem_;
  std::vector<int64_t> buffer_address_;
  std::vector<std::unique_ptr<Context>> stack_;
  uint32_t op_ = 0;  // op slot of the statement in execution
  int64_t statements_ = 0;
  int64_t effects_ = 0;  // changes of memory and semaphores
};

}  // namespace tpu::emulate::llo_run
