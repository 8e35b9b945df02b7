// Ops of StableHLO's interpreter dialect: a grid of processes inside a program, printing and probing values;
// and the transfers that cross the program's border: infeed, outfeed, send, recv.
#include <algorithm>

#include "checks.h"
#include "grid.h"
#include "tpu/eval/interpreter_text.h"
#include "tpu/support/units.h"
#include "values.h"

namespace tpu::eval {
namespace {

llvm::Error hangs(const hlo::Module& module, hlo::OpId op, int64_t me) {
  return fail(Code::kEvalHang, module.loc(module.op(op).loc),
              llvm::Twine("process ") + llvm::Twine(me) + " waits in " +
                  hlo::opInfo(module.op(op).opcode).name + " for others that never come",
              ExitStatus::kHangs);
}

bool isHang(const Diagnostic& d) { return d.code == Code::kEvalHang; }

}  // namespace

LanesOutcome Interpreter::runInterpreterOp(hlo::OpId id, LaneList in, const Team& team) {
  const llvm::StringRef target = module_.getString(id, AttrKey::call_target_name);
  if (target == "interpreter.run_parallel") return runParallel(id, std::move(in));
  if (target == "interpreter.print") {
    if (host_.options.print) {
      *host_.options.print << printedName(module_, module_.op(id).operands[0]) << " = ";
      const hlo::Type& type = module_.typeOf(module_.op(id).operands[0]);
      printInterpreted(*host_.options.print, mlirTypeText(module_, type), *in[0].at(team.devices.front()));
      *host_.options.print << '\n';
    }
    return in;
  }
  if (target == "interpreter.probe" || target == "check.expect_serialized_eq")
    return runProbe(id, std::move(in), team);
  return fail(Code::kEvalUnsupported, locOf(id), "unknown operation '" + target + "'");
}

// A probe gives its operand back; the check looks for the value of an iteration, counted among the probes of
// the name or, as the reference does, among all.
LanesOutcome Interpreter::runProbe(hlo::OpId id, LaneList in, const Team& team) {
  const std::string name = module_.getString(id, AttrKey::probe_id).str();
  const std::string type = mlirTypeText(module_, module_.typeOf(module_.op(id).operands[0]));
  const Tensor value = in[0].at(team.devices.front());
  if (!module_.op(id).results.empty()) {
    host_.probes.push_back({name, type, *value});
    return in;
  }
  const int64_t wanted = module_.getInt(id, AttrKey::iteration, 0);
  const Probe* found = nullptr;
  int64_t of_name = 0, of_all = 0;
  for (const Probe& p : host_.probes) {
    if (p.id == name && (of_name == wanted || (of_all == wanted && !found))) found = &p;
    of_name += p.id == name;
    ++of_all;
  }
  const auto broken = [&](const llvm::Twine& text) {
    return fail(Code::kEvalCheckFailed, locOf(id), "check.expect_serialized_eq: " + text,
                ExitStatus::kDiffers);
  };
  if (!found) return broken("nothing was recorded for probe '" + llvm::Twine(name) + "'");
  if (found->type != type)
    return broken("probe '" + llvm::Twine(name) + "' is " + found->type + ", expected " + type);
  if (llvm::Error e = checkHolds(module_, id, *value, found->value)) return e;
  return LaneList{};
}

LanesOutcome Interpreter::runParallel(hlo::OpId id, LaneList in) {
  const hlo::Attr* programs = module_.findAttr(id, AttrKey::programs);
  if (!programs) return fail(Code::kEvalBadOperand, locOf(id), "run_parallel without programs");
  const int64_t partitions = module_.getInt(id, AttrKey::grid_partitions, 1);
  const int64_t count = static_cast<int64_t>(programs->strs.size());
  std::vector<hlo::FuncId> funcs;
  size_t args = 0, results = 0;
  for (const std::string& name : programs->strs) {
    const hlo::FuncId func = module_.findFunc(name);
    if (!func)
      return fail(Code::kEvalBadOperand, locOf(id), "run_parallel of an unknown function '" + name + "'");
    funcs.push_back(func);
    args += module_.region(module_.func(func).body).args.size();
    results += module_.func(func).result_types.size();
  }
  if (args != in.size() || results != module_.op(id).results.size())
    return fail(Code::kEvalBadOperand, locOf(id),
                "run_parallel has " + llvm::Twine(in.size()) + " operands and " +
                    llvm::Twine(module_.op(id).results.size()) + " results, its programs " +
                    llvm::Twine(args) + " and " + llvm::Twine(results));
  const hlo::Attr* infeed = module_.findAttr(id, AttrKey::infeed);
  Grid grid(count / partitions, partitions, infeed ? infeed->strs : std::vector<std::string>());
  std::vector<LaneList> inputs(count), outputs(count);
  std::vector<std::optional<Diagnostic>> problems(count);
  size_t next = 0;
  for (int64_t d = 0; d < count; ++d)
    for (size_t i = module_.region(module_.func(funcs[d]).body).args.size(); i > 0; --i)
      inputs[d].push_back(in[next++]);
  grid.run([&](int64_t d) {
    Interpreter process(module_, sink_, host_, grid);
    LanesOutcome out = process.runFunction(funcs[d], std::move(inputs[d]), Team{{d}});
    if (out) {
      for (Lanes& lanes : *out)
        if (!lanes.uniform()) lanes = Lanes(lanes.at(d));
      outputs[d] = std::move(*out);
    } else {
      problems[d] = takeDiagnostics(out.takeError()).front();
    }
  });
  // A process that failed leaves others waiting: the failure is what is to be said.
  const Diagnostic* first = nullptr;
  for (const auto& problem : problems)
    if (problem && (!first || (isHang(*first) && !isHang(*problem)))) first = &*problem;
  if (first) return fail(*first);
  LaneList out;
  for (LaneList& part : outputs)
    for (Lanes& lanes : part) out.push_back(std::move(lanes));
  return out;
}

LanesOutcome Interpreter::meetCollective(hlo::OpId id, LaneList in, int64_t me) {
  auto groups = collectiveGroups(*this, module_, id);
  if (!groups) return groups.takeError();
  DeviceGroup members;
  for (const DeviceGroup& group : *groups)
    if (llvm::is_contained(group, me)) members = group;
  // Only senders and receivers meet in a permute; the others have their zeros at once.
  if (const hlo::Attr* pairs = module_.findAttr(id, AttrKey::source_target_pairs)) {
    DeviceGroup named;
    for (int64_t at : pairs->groups.ids)
      if (at >= 0 && at < static_cast<int64_t>(members.size()) && !llvm::is_contained(named, members[at]))
        named.push_back(members[at]);
    std::sort(named.begin(), named.end());
    members = llvm::is_contained(named, me) ? named : DeviceGroup{me};
  }
  if (members.empty())
    return fail(Code::kEvalBadOperand, locOf(id),
                llvm::Twine("process ") + llvm::Twine(me) + " is in no group of this collective");
  // The n-th collective of a group on a channel meets the n-th of the others.
  std::string key = hlo::opInfo(module_.op(id).opcode).name.str() + "/" +
                    std::to_string(module_.getInt(id, AttrKey::channel_id)) + "/";
  for (int64_t d : members) key += std::to_string(d) + ",";
  key += "/" + std::to_string(rounds_[key]++);
  const auto brought = grid_->meet(members, key, me, std::move(in));
  if (!brought) return hangs(module_, id, me);
  Team team{members};
  std::sort(team.devices.begin(), team.devices.end());
  LaneList all(module_.op(id).operands.size());
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].copies.resize(devices_);
    for (const auto& [device, lanes] : *brought) all[i].copies[device] = lanes[i].at(device);
  }
  LanesOutcome out = runCollective(id, std::move(all), team);
  if (!out) return out;
  for (Lanes& lanes : *out) lanes = Lanes(lanes.at(me));
  return out;
}

std::optional<LaneList> Interpreter::fromHost(const std::vector<HostTransfers::Values>& queue,
                                              std::map<int64_t, size_t>& taken, const Team& team) {
  const size_t next = taken[team.devices.front()];
  if (next >= queue.size()) return std::nullopt;
  for (int64_t d : team.devices) ++taken[d];
  LaneList out;
  for (const HostTensor& value : queue[next]) out.emplace_back(std::make_shared<HostTensor>(value));
  return out;
}

// What came from elsewhere, with the token behind it, is what the operation says it gives.
LanesOutcome Interpreter::received(hlo::OpId id, LaneList got) const {
  const hlo::Op& op = module_.op(id);
  const std::string who = hlo::opInfo(op.opcode).mnemonic.str();
  got.push_back(Lanes());
  if (got.size() != op.results.size())
    return fail(Code::kEvalBadOperand, locOf(id),
                who + " gets " + plural(got.size() - 1, "array") + ", not " + llvm::Twine(op.results.size() - 1));
  for (size_t r = 0; r + 1 < got.size(); ++r) {
    const hlo::Type& type = module_.typeOf(op.results[r]);
    for (const Tensor& t : got[r].copies) {
      if (!t) continue;
      bool same = t->element == type.element && t->dims.size() == type.dims.size();
      for (size_t d = 0; same && d < type.dims.size(); ++d) same = type.dims[d] == hlo::kDynamicDim || t->dims[d] == type.dims[d];
      if (!same)
        return fail(Code::kEvalBadOperand, locOf(id),
                    who + " gets " + tpu::typeText(t->element, t->dims) + ", not " + tpu::typeText(type.element, type.dims));
    }
  }
  return got;
}

LanesOutcome Interpreter::runTransfer(hlo::OpId id, LaneList in, const Team& team) {
  const hlo::Op& op = module_.op(id);
  const int64_t me = team.devices.front(), channel = module_.getInt(id, AttrKey::channel_id);
  LaneList values(in.begin(), in.end() - 1);  // without the token
  HostTransfers* const host = grid_ ? nullptr : host_.options.transfers;
  const auto toHost = [&](std::vector<HostTransfers::Values>& queue) {
    if (!team.has(0)) return;
    queue.emplace_back();
    for (const Lanes& value : values) queue.back().push_back(*value.at(0));
  };
  const bool with_host = host && module_.getBool(id, AttrKey::is_host_transfer);
  switch (op.opcode) {
    case Opcode::outfeed:
      if (host) toHost(host->outfed);
      return LaneList{Lanes()};
    case Opcode::send:
      if (with_host) toHost(host->sent[channel]);
      if (grid_) {
        grid_->send(channel, std::move(values));
      } else {
        sent_[channel].push_back(std::move(values));
      }
      return LaneList{Lanes()};
    case Opcode::recv: {
      std::optional<LaneList> got;
      if (with_host && host->receive.count(channel)) {
        got = fromHost(host->receive[channel], received_[channel], team);
        if (!got)
          return fail(Code::kEvalBadOperand, locOf(id),
                      "recv reads more from the host over channel " + llvm::Twine(channel) + " than there is");
      } else if (grid_) {
        got = grid_->receive(channel, me);
      } else if (auto& queue = sent_[channel]; !queue.empty()) {
        got = std::move(queue.front());
        queue.erase(queue.begin());
      }
      if (!got) return hangs(module_, id, me);
      return received(id, std::move(*got));
    }
    default: {  // infeed
      if (host) {
        auto fed = fromHost(host->infeed, infed_, team);
        if (!fed)
          return fail(Code::kEvalBadOperand, locOf(id),
                      "infeed reads from an empty queue after " + plural(host->infeed.size(), "read"));
        return received(id, std::move(*fed));
      }
      const std::string name = grid_ ? grid_->nextInfeed() : "";
      const hlo::FuncId func = name.empty() ? hlo::FuncId() : module_.findFunc(name);
      if (!func)
        return fail(
            Code::kEvalBadOperand, locOf(id),
            name.empty() ? "infeed reads from an empty queue" : "unknown infeed function '" + name + "'");
      LanesOutcome out = runFunction(func, {}, team);
      return out ? received(id, std::move(*out)) : std::move(out);
    }
  }
}

}  // namespace tpu::eval
