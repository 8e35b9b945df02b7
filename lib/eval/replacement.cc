// A kernel that is not StableHLO (a Pallas kernel in a tpu_custom_call) runs as the program that the user gives for it.
#include "interpreter.h"
#include "tpu/eval/evaluate.h"

namespace tpu::eval {
namespace {

// kernel_name = "flash_attention", as it stands among the attributes of a tpu_custom_call.
llvm::StringRef kernelNameOf(const hlo::Module& module, hlo::OpId id) {
  auto [before, rest] = module.getString(id, AttrKey::extra).split("kernel_name = \"");
  return rest.take_until([](char ch) { return ch == '"'; });
}

llvm::Error checkResults(const hlo::Module& module, hlo::OpId id, llvm::ArrayRef<HostTensor> given) {
  const hlo::Op& op = module.op(id);
  const auto refuse = [&](const llvm::Twine& text) {
    return fail(Code::kEvalWrongInputs, module.loc(op.loc), "the replacement of this call gives " + text);
  };
  if (given.size() != op.results.size())
    return refuse(llvm::Twine(given.size()) + " results, the call " + llvm::Twine(op.results.size()));
  for (size_t r = 0; r < given.size(); ++r) {
    const hlo::Type& type = module.typeOf(op.results[r]);
    if (given[r].element != type.element || given[r].dims != type.dims)
      return refuse(typeText(given[r].element, given[r].dims) + ", the call " + typeText(type.element, type.dims));
  }
  return llvm::Error::success();
}

}  // namespace

std::string nameOfCall(const hlo::Module& module, hlo::OpId id) {
  const llvm::StringRef kernel = kernelNameOf(module, id);
  return (kernel.empty() ? module.getString(id, AttrKey::call_target_name) : kernel).str();
}

LanesOutcome Interpreter::runReplacement(hlo::OpId id, const hlo::Module& with, const LaneList& in, const Team& team) {
  const bool uniform = llvm::all_of(in, [](const Lanes& l) { return l.uniform(); });
  LaneList out(module_.op(id).results.size());
  for (int64_t device : team.devices) {
    std::vector<HostTensor> args;
    for (const Lanes& l : in) {
      const Tensor t = l.at(device);
      if (!t) return fail(Code::kEvalWrongInputs, locOf(id), "a replaced call takes arrays only");
      args.push_back(*t);
    }
    auto results = evaluate(with, std::move(args), sink_, {.print = host_.options.print});
    if (!results) return results.takeError();
    if (llvm::Error e = checkResults(module_, id, *results)) return e;
    for (size_t r = 0; r < out.size(); ++r) {
      out[r].copies.resize(static_cast<size_t>(uniform ? 1 : devices_));
      out[r].copies[static_cast<size_t>(uniform ? 0 : device)] = std::make_shared<HostTensor>(std::move((*results)[r]));
    }
    if (uniform) break;
  }
  return out;
}

}  // namespace tpu::eval
