// The chain of reasons behind one value's sharding: from step to step of propagation back to what the user wrote.
#include <map>
#include <set>

#include "context.h"
#include "tpu/hlo/infer.h"
#include "tpu/sharding/text.h"
#include "tpu/support/port_name.h"

namespace tpu::partition {

namespace {

/// Values by the names that the view for people gives them.
class Names {
 public:
  explicit Names(const hlo::Module& m) : m_(m) {
    const hlo::Func& entry = m.func(m.entry);
    region(entry.body);
  }
  std::string of(Slot slot) const {
    auto it = names_.find(slot);
    return it == names_.end() ? "result of the program" : it->second;
  }
  std::vector<hlo::ValueId> find(llvm::StringRef text) const {
    std::vector<hlo::ValueId> out;
    const hlo::Func& entry = m_.func(m_.entry);
    const auto& args = m_.region(entry.body).args;
    for (size_t i = 0; i < args.size() && i < entry.arg_ports.size(); ++i) {
      if (sameName(m_.string(entry.arg_ports[i].name), text)) out.push_back(args[i]);
    }
    for (const auto& [slot, name] : names_) {
      hlo::ValueId v(slot);
      llvm::StringRef loc = m_.loc(m_.value(v).loc);
      if (m_.value(v).def) loc = m_.loc(m_.op(m_.value(v).def).loc);
      bool here = loc.contains(':') && (loc == text || (loc.starts_with(text) && loc.drop_front(text.size()).starts_with(":")));
      if (name == text || here) out.push_back(v);
    }
    return out;
  }

 private:
  void region(hlo::RegionId r) {
    for (hlo::ValueId v : m_.region(r).args) names_[v.v] = "%a" + std::to_string(next_arg_++);
    for (hlo::OpId id : m_.region(r).ops) {
      for (hlo::ValueId v : m_.op(id).results) names_[v.v] = "%" + std::to_string(next_++);
      for (hlo::RegionId inner : m_.op(id).regions) region(inner);
    }
  }
  const hlo::Module& m_;
  std::map<uint32_t, std::string> names_;
  int next_arg_ = 0, next_ = 0;
};

class Chain {
 public:
  Chain(const hlo::Module& m, const Context& ctx, const Names& names)
      : m_(m), mesh_(ctx.meshOf(m)), p_(*ctx.propagated), names_(names) {
    for (size_t i = 0; i < p_.steps.size(); ++i) steps_[p_.steps[i].slot].push_back(i);
  }

  std::string of(hlo::ValueId v) {
    llvm::raw_string_ostream os(text_);
    hlo::Sharding s;
    for (const hlo::DimSharding& d : p_.of(v.v)) {
      s.dims.emplace_back();
      s.dims.back().axes = d.axes;
    }
    os << names_.of(v.v) << ' ' << hlo::typeText(m_, m_.value(v).type) << ' ' << sharding::print(mesh_, s) << where(v.v) << '\n';
    if (v.v < p_.free.size() && p_.free[v.v]) os << "  made where it is needed, in the sharding that is needed\n";
    follow(p_.flow.owner[v.v], 1);
    return std::move(text_);
  }

 private:
  std::string where(Slot slot) const {
    if (slot >= p_.flow.num_values) return "";
    hlo::ValueId v(slot);
    llvm::StringRef loc = m_.value(v).def ? m_.loc(m_.op(m_.value(v).def).loc) : m_.loc(m_.value(v).loc);
    return loc.empty() ? "" : " at " + loc.str();
  }

  void follow(Slot slot, int depth) {
    llvm::raw_string_ostream os(text_);
    if (!seen_.insert(slot).second) return;
    auto it = steps_.find(slot);
    sharding::Axes added;
    if (it != steps_.end()) {
      for (size_t i : it->second) {
        const Step& s = p_.steps[i];
        added.append(s.axes.begin(), s.axes.end());
        os.indent(2 * depth) << "dimension " << s.dim << " got " << sharding::print(mesh_, s.axes) << " from "
                             << names_.of(s.from) << where(s.from);
        if (s.op) os << " by " << hlo::opInfo(m_.op(s.op).opcode).mnemonic << " at " << m_.loc(m_.op(s.op).loc);
        os << '\n';
        follow(s.from, depth + 1);
      }
    }
    // What no step added was written by the user.
    const DimStates& dims = p_.dims[slot];
    for (size_t d = 0; d < dims.size(); ++d) {
      sharding::Axes own = sharding::prefixWithout(dims[d].axes, added);
      if (own.empty()) continue;
      os.indent(2 * depth) << "dimension " << d << " has " << sharding::print(mesh_, own) << " as asked for" << where(slot)
                           << '\n';
    }
  }

  const hlo::Module& m_;
  const hlo::Mesh& mesh_;
  const Propagated& p_;
  const Names& names_;
  std::map<Slot, std::vector<size_t>> steps_;
  std::set<Slot> seen_;
  std::string text_;
};

}  // namespace

llvm::Error explainValue(const hlo::Module& m, Context& ctx) {
  if (ctx.explain.empty()) return llvm::Error::success();
  Names names(m);
  std::vector<hlo::ValueId> found = names.find(ctx.explain);
  if (found.empty())
    return fail(Code::kUnknownValue, "",
                "--explain=" + ctx.explain +
                    ": the program has no such value; name an argument, a line such as model.py:12, or %17 as "
                    "--stop-after=propagate --emit=text prints it",
                ExitStatus::kUsage);
  for (hlo::ValueId v : found) ctx.explanation += Chain(m, ctx, names).of(v);
  ctx.explain_value = found.front();
  return llvm::Error::success();
}

}  // namespace tpu::partition
