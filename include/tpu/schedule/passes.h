// The scheduler as a list of passes over one state: import, place, expand, simplify, units, pipeline,
// allocate, bundle, emit. Between import and emit the program is a set of functions on virtual, then physical
// registers, which has a text view.
#pragma once
#include <memory>

#include "tpu/pass/pass.h"
#include "tpu/schedule/schedule.h"

namespace tpu::schedule {

struct Work;  // functions on their way (lib/schedule/work.h)

struct State {
  State();
  ~State();
  std::string input, input_name;  // text of the llo document, for import
  llo::Module module;
  target::Chip chip;
  Options options;
  Stats stats;
  isa::Program program;  // after emit
  std::unique_ptr<Work> work;
};

llvm::ArrayRef<Pass<State>> passes();

/// Verification and views between passes; documents are llo before emit and are not written after it
/// (assembly does).
class Hooks : public PassHooks {
 public:
  explicit Hooks(State& state) : state_(state) {}
  llvm::Error verify() override;
  void printText(llvm::raw_ostream& os) override;
  void writeDocument(llvm::raw_ostream& os) override;

 private:
  State& state_;
};

}  // namespace tpu::schedule
