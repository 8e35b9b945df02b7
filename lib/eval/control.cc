// while, if, case, calls: together while the devices agree, in parts where they do not.
#include <map>

#include "interpreter.h"

namespace tpu::eval {
namespace {

Lanes joinLane(int64_t devices, llvm::ArrayRef<std::pair<Team, LaneList>> parts, size_t index);

Lanes joinTuple(int64_t devices, llvm::ArrayRef<std::pair<Team, LaneList>> parts, size_t index) {
  std::vector<std::pair<Team, LaneList>> inner;
  for (const auto& [team, lanes] : parts) inner.emplace_back(team, *lanes[index].tuple);
  Lanes out;
  out.tuple = std::make_shared<LaneList>(joinParts(devices, inner));
  return out;
}

Lanes joinLane(int64_t devices, llvm::ArrayRef<std::pair<Team, LaneList>> parts, size_t index) {
  const Lanes& first = parts.front().second[index];
  if (first.tuple) return joinTuple(devices, parts, index);
  Lanes out;
  if (first.copies.empty()) return out;  // a token
  out.copies.resize(devices);
  for (const auto& [team, lanes] : parts)
    for (int64_t d : team.devices) out.copies[d] = lanes[index].at(d);
  return out;
}

}  // namespace

LaneList joinParts(int64_t devices, llvm::ArrayRef<std::pair<Team, LaneList>> parts) {
  if (parts.size() == 1) return parts.front().second;
  LaneList out;
  for (size_t i = 0; i < parts.front().second.size(); ++i) out.push_back(joinLane(devices, parts, i));
  return out;
}

LanesOutcome Interpreter::runWhile(hlo::OpId id, LaneList carried, const Team& team) {
  const hlo::RegionId cond = module_.op(id).regions[0], body = module_.op(id).regions[1];
  std::vector<std::pair<Team, LaneList>> finished;
  Team going = team;
  while (true) {
    LanesOutcome verdict = runRegion(cond, carried, going);
    if (!verdict) return verdict;
    const Lanes predicate = std::move(verdict->front());
    Team on, off;
    for (int64_t d : going.devices) (predicate.at(d)->bytes[0] ? on : off).devices.push_back(d);
    if (!off.devices.empty()) {
      if (on.devices.empty()) {
        finished.emplace_back(std::move(off), std::move(carried));
        break;
      }
      finished.emplace_back(std::move(off), carried);
      going = std::move(on);
    }
    LanesOutcome next = runRegion(body, std::move(carried), going);
    if (!next) return next;
    carried = std::move(*next);
  }
  return joinParts(devices_, finished);
}

LanesOutcome Interpreter::runBranches(hlo::OpId id, const Lanes& index, const Team& team) {
  const hlo::Op& op = module_.op(id);
  std::map<int64_t, Team> by_branch;
  for (int64_t d : team.devices) {
    int64_t branch = integerAt(*index.at(d), 0);
    if (op.opcode == Opcode::if_) {
      branch = branch ? 0 : 1;
    } else if (branch < 0 || branch >= static_cast<int64_t>(op.regions.size())) {
      branch = static_cast<int64_t>(op.regions.size()) - 1;
    }
    by_branch[branch].devices.push_back(d);
  }
  std::vector<std::pair<Team, LaneList>> parts;
  for (auto& [branch, part] : by_branch) {
    LanesOutcome out = runRegion(op.regions[branch], {}, part);
    if (!out) return out;
    parts.emplace_back(std::move(part), std::move(*out));
  }
  return joinParts(devices_, parts);
}

LanesOutcome Interpreter::runCall(hlo::OpId id, llvm::StringRef callee, LaneList in, const Team& team) {
  const hlo::FuncId func = module_.findFunc(callee);
  if (!func) return fail(Code::kEvalUnsupported, locOf(id), "call of an unknown function '" + callee + "'");
  return runFunction(func, std::move(in), team);
}

LanesOutcome Interpreter::runControl(hlo::OpId id, LaneList in, const Team& team) {
  switch (module_.op(id).opcode) {
    case Opcode::while_:
      return runWhile(id, std::move(in), team);
    case Opcode::if_:
    case Opcode::case_:
      return runBranches(id, in[0], team);
    case Opcode::call:
      return runCall(id, module_.getString(id, AttrKey::callee), std::move(in), team);
    case Opcode::composite:
      return runCall(id, module_.getString(id, AttrKey::decomposition), std::move(in), team);
    case Opcode::chlo_scan:
      return runScan(id, std::move(in), team);
    case Opcode::sdy_named_computation:
      return runRegion(module_.op(id).regions[0], std::move(in), team);
    case Opcode::sdy_manual_computation:
      return runManual(id, std::move(in), team);
    default:
      return fail(Code::kEvalUnsupported, locOf(id),
                  "the evaluator does not take " + hlo::opInfo(module_.op(id).opcode).name);
  }
}

}  // namespace tpu::eval
