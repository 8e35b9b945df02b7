// Programs above the machine: run by the reference evaluator, without time.
#include "program.h"
#include "transfers.h"
#include "tpu/eval/evaluate.h"
#include "tpu/hlo/analysis.h"
#include "tpu/frontend/frontend.h"
#include "tpu/sharding/shard.h"
#include "tpu/support/units.h"

namespace tpu::run {
namespace {

class Evaluated : public Program {
 public:
  Evaluated(hlo::Module module, eval::Replacements replacements, eval::HostTransfers transfers)
      : module_(std::move(module)), replacements_(std::move(replacements)), transfers_(std::move(transfers)) {
    const hlo::Func& entry = module_.func(module_.entry);
    const size_t args = module_.region(entry.body).args.size();
    for (size_t i = 0; i < args; ++i)
      signature_.args.push_back(port(nameOf(entry.arg_ports, i), eval::argumentType(module_, i)));
    for (size_t i = 0; i < entry.result_types.size(); ++i)
      signature_.results.push_back(port(nameOf(entry.result_ports, i), eval::resultType(module_, i)));
  }

  Runner runner() const override { return Runner::kEvaluator; }
  const Signature& signature() const override { return signature_; }
  llvm::Error requireMemory(const Tool&) const override { return eval::requireMemory(module_); }
  std::string precision() const override { return "highest"; }
  const hlo::Module* module() const override { return &module_; }

  llvm::Expected<std::vector<HostTensor>> run(std::vector<HostTensor> inputs, Tool& tool, Record record) override {
    eval::HostTransfers transfers = transfers_;
    auto results =
        eval::evaluate(module_, std::move(inputs), &tool.diagnostics(),
                       {.print = &llvm::outs(), .replacements = &replacements_, .transfers = &transfers});
    llvm::outs().flush();
    if (results && record == Record::kAsAsked)
      if (llvm::Error e = deliverTransfers(tool, transfers)) return e;
    if (results && tool.report() && record == Record::kAsAsked) writeReport(*tool.report());
    return results;
  }

  std::optional<int64_t> ownerOf(size_t result, int64_t element) const override {
    const hlo::Func& entry = module_.func(module_.entry);
    if (module_.stage != hlo::Stage::kSpmd || result >= entry.result_ports.size()) return std::nullopt;
    const hlo::Dims& dims = eval::resultType(module_, result).dims;
    return tpu::ownerOf(module_, dims, entry.result_ports[result].sharding, element);
  }

  std::string summary() const override {
    return plural(static_cast<uint64_t>(devices()), "device") + " on the evaluator, untimed\n";
  }

 private:
  static Port port(std::string name, const hlo::Type& type) {
    return {std::move(name), type.element, type.dims};
  }

  std::string nameOf(llvm::ArrayRef<hlo::Port> ports, size_t i) const {
    return i < ports.size() ? module_.string(ports[i].name).str() : "";
  }

  int64_t devices() const { return eval::numDevices(module_); }

  // The run record, null for what only a machine knows.
  void writeReport(Report& report) const {
    JsonWriter& json = report.begin("run");
    json.field("target", module_.target.empty() ? std::optional<std::string>() : module_.target)
        .field("devices", devices());
    for (const char* key : {"cycles", "time_ns"}) json.key(key).null();
    for (const char* key : {"required_floor_ns", "executed_floor_ns"}) {
      json.key(key).beginObject();
      for (const char* resource : {"mxu", "hbm", "ici"}) json.key(resource).null();
      json.endObject();
    }
    for (const char* key : {"efficiency", "mxu_utilization", "hbm_utilization", "ici_utilization", "mfu",
                            "hbm_peak_bytes", "vmem_peak_bytes"})
      json.key(key).null();
    report.end();
  }

  hlo::Module module_;
  eval::Replacements replacements_;
  const eval::HostTransfers transfers_;  // before the run
  Signature signature_;
};

// --replace-call=NAME=FILE
llvm::Expected<eval::Replacements> readReplacements(Tool& tool, const hlo::Module& module) {
  eval::Replacements out;
  for (const std::string& text : tool.all("replace-call")) {
    const auto [name, path] = llvm::StringRef(text).split('=');
    if (name.empty() || path.empty()) return tool.badFlag("replace-call", "expected NAME=FILE, found '" + text + "'");
    bool called = false;
    for (uint32_t i = 0; i < module.numOps() && !called; ++i)
      called = module.op(hlo::OpId(i)).opcode == hlo::Opcode::custom_call && eval::nameOfCall(module, hlo::OpId(i)) == name;
    if (!called) return tool.badFlag("replace-call", "the program has no custom call '" + name + "'");
    auto in = readInput(path);
    if (!in) return in.takeError();
    tool.dependsOn(path);
    auto with = frontend::readProgram(in->bytes, in->name, tool.diagnostics());
    if (!with) return with.takeError();
    hlo::flattenTuples(*with);
    out.insert_or_assign(name.str(), std::move(*with));
  }
  return out;
}

}  // namespace

llvm::Expected<std::unique_ptr<Program>> openEvaluated(Tool& tool, const Input& input) {
  const bool named = tool.has("entry");
  auto module = frontend::readProgram(input.bytes, input.name, tool.diagnostics(), {.any_entry = named});
  if (!module) return module.takeError();
  if (named) {
    module->entry = module->findFunc(tool.get("entry"));
    if (!module->entry) return tool.badFlag("entry", "no function @" + tool.get("entry") + " in the input");
  }
  hlo::flattenTuples(*module);
  auto replacements = readReplacements(tool, *module);
  if (!replacements) return replacements.takeError();
  hlo::expandKnownCalls(*module, [&](llvm::StringRef target) { return replacements->count(target) != 0; });
  auto transfers = gatherTransfers(tool, *module);
  if (!transfers) return transfers.takeError();
  return std::make_unique<Evaluated>(std::move(*module), std::move(*replacements), std::move(*transfers));
}

}  // namespace tpu::run
