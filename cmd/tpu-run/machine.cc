// Programs of the machine: llo on the untimed interpreter, bundles and objects on the emulator.
#include "program.h"
#include "tpu/asm/object.h"
#include "tpu/asm/program_document.h"
#include "tpu/emulate/emulate.h"
#include "tpu/emulate/llo_interpreter.h"
#include "tpu/llo/document.h"
#include "tpu/llo/verify.h"
#include "tpu/serial/document.h"
#include "tpu/support/parallel.h"
#include "tpu/support/units.h"

namespace tpu::run {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

Port port(const isa::SignaturePort& p) { return {p.name, p.element, p.global_dims}; }

std::string precisionOf(const Options& options) {
  for (const auto& [name, value] : options)
    if (name == "precision") return value;
  return "highest";
}

class OnEmulator : public Program {
 public:
  explicit OnEmulator(isa::Program program) : program_(std::move(program)) {
    for (const isa::SignaturePort& p : program_.args) signature_.args.push_back(port(p));
    for (const isa::SignaturePort& p : program_.results) signature_.results.push_back(port(p));
  }
  Runner runner() const override { return Runner::kEmulator; }
  const Signature& signature() const override { return signature_; }
  llvm::Error requireMemory(const Tool& tool) const override {
    if (tool.has("timing-only")) return llvm::Error::success();  // arrays are not touched
    return emulate::requireMemory(program_, tool.has("strict"));
  }
  std::string precision() const override { return precisionOf(program_.options); }
  std::string summary() const override { return summary_; }
  std::optional<int64_t> ownerOf(size_t result, int64_t element) const override {
    return isa::ownerOf(program_.results[result], program_.devices, element);
  }

  llvm::Expected<std::vector<HostTensor>> run(std::vector<HostTensor> inputs, Tool& tool, Record record) override {
    auto options = optionsFrom(tool);
    if (!options) return options.takeError();
    options->trace &= record == Record::kAsAsked;
    auto result = emulate::run(program_, inputs, *options);
    if (!result) return result.takeError();
    if (tool.report() && record == Record::kAsAsked) {
      std::string lines;
      llvm::raw_string_ostream os(lines);
      emulate::writeReport(*result, os);
      llvm::SmallVector<llvm::StringRef, 16> rows;
      llvm::StringRef(lines).split(rows, '\n', -1, false);
      for (llvm::StringRef row : rows) tool.report()->line(row);
    }
    if (options->trace) {
      std::string trace;
      llvm::raw_string_ostream os(trace);
      emulate::writeTrace(*result, os);
      if (llvm::Error e = writeOutput(tool.get("trace"), trace, OutputKind::kText)) return e;
    }
    summary_ = emulate::summary(*result);
    return std::move(result->results);
  }

 private:
  static llvm::Expected<emulate::RunOptions> optionsFrom(const Tool& tool) {
    emulate::RunOptions options;
    options.threads = static_cast<int>(threads());
    options.strict = tool.has("strict");
    options.trace = tool.has("trace");
    options.timing_only = tool.has("timing-only");
    auto limit = tool.getInt("max-cycles", 0, INT64_MAX);
    if (!limit) return limit.takeError();
    options.max_cycles = *limit;
    if (!tool.has("start-skew")) return options;
    llvm::StringRef seed = tool.get("start-skew");
    if (!seed.consume_front("seed:") || seed.getAsInteger(10, options.skew_seed))
      return tool.badFlag("start-skew", "expected seed:N, found '" + tool.get("start-skew") + "'");
    options.start_skew = true;
    return options;
  }

  isa::Program program_;
  Signature signature_;
  std::string summary_;
};

class OnInterpreter : public Program {
 public:
  OnInterpreter(llo::Module module, target::Chip chip) : module_(std::move(module)), chip_(std::move(chip)) {
    for (const llo::Port& p : module_.args) signature_.args.push_back(named(p));
    for (const llo::Port& p : module_.results) signature_.results.push_back(named(p));
  }
  Runner runner() const override { return Runner::kInterpreter; }
  const Signature& signature() const override { return signature_; }
  llvm::Error requireMemory(const Tool&) const override { return emulate::requireMemory(module_); }
  std::string precision() const override { return precisionOf(module_.options); }
  std::string summary() const override {
    return plural(static_cast<uint64_t>(module_.devices), "device") + " on the llo interpreter, untimed\n";
  }
  std::optional<int64_t> ownerOf(size_t result, int64_t element) const override {
    return isa::ownerOf(module_.results[result].signature, module_.devices, element);
  }
  llvm::Expected<std::vector<HostTensor>> run(std::vector<HostTensor> inputs, Tool&, Record) override {
    return emulate::interpret(module_, chip_, inputs);
  }

 private:
  static Port named(const llo::Port& p) {
    Port out = port(p.signature);
    if (out.name.empty()) out.name = p.name;
    return out;
  }
  llo::Module module_;
  target::Chip chip_;
  Signature signature_;
};

}  // namespace

llvm::Expected<std::unique_ptr<Program>> openMachine(Tool&, const Input& input) {
  if (stageOf(input.bytes) != "llo") {
    auto program = assembly::readAnyProgram(input.bytes, input.name);
    if (!program) return program.takeError();
    return std::make_unique<OnEmulator>(std::move(*program));
  }
  auto module = llo::readDocument(input.bytes, input.name);
  if (!module) return module.takeError();
  auto chip = target::parseChip(module->chip_json, module->target);
  if (!chip) return chip.takeError();
  return std::make_unique<OnInterpreter>(std::move(*module), std::move(*chip));
}

}  // namespace tpu::run
