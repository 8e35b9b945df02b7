// A program of any stage that tpu-run can run: its signature first, so that inputs are checked, then the run.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/tool.h"
#include "tpu/hlo/module.h"
#include "tpu/support/host_tensor.h"

namespace tpu::run {

struct Port {
  std::string name;  // may be empty
  ElementType element = ElementType::kF32;
  llvm::SmallVector<int64_t, 6> dims;  // of the whole array
};

struct Signature {
  std::vector<Port> args, results;
};

/// What runs a program.
enum class Runner : uint8_t { kEvaluator, kInterpreter, kEmulator };

/// Whether a run writes what --report and --trace ask for.
enum class Record : uint8_t { kNothing, kAsAsked };

class Program {
 public:
  virtual ~Program() = default;
  virtual Runner runner() const = 0;
  virtual const Signature& signature() const = 0;
  /// Fails where a run would need more memory than this host has; asked before any input is made.
  virtual llvm::Error requireMemory(const Tool& tool) const = 0;
  /// How f32 dots are computed ("default", "high", "highest"): named where results differ.
  virtual std::string precision() const = 0;
  /// Whole arrays in, whole arrays out. Writes --report and --trace itself.
  virtual llvm::Expected<std::vector<HostTensor>> run(std::vector<HostTensor> inputs, Tool& tool, Record record) = 0;
  /// The first device that holds an element of a result (row-major position); none where arrays are not cut.
  virtual std::optional<int64_t> ownerOf(size_t result, int64_t element) const = 0;
  /// The program of the evaluator, null for machine stages: what --bisect looks into.
  virtual const hlo::Module* module() const { return nullptr; }
  /// What the tool says about the run besides the results; whole lines.
  virtual std::string summary() const = 0;
};

/// A source program or a document of stage hlo or spmd, on the evaluator.
llvm::Expected<std::unique_ptr<Program>> openEvaluated(Tool& tool, const Input& input);
/// An llo document on the untimed interpreter; bundles, assembly text or an object on the emulator.
llvm::Expected<std::unique_ptr<Program>> openMachine(Tool& tool, const Input& input);
/// Chooses by the first bytes.
llvm::Expected<std::unique_ptr<Program>> openProgram(Tool& tool, const Input& input);

}  // namespace tpu::run
