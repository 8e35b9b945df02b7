// sdy.sharding_rule on a custom call: the user says how dimensions correspond,
//   #sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=8, j=16, k=4} reduction={j} need_replication={k}, custom>
// A dimension may be several factors, major to minor: [ij]. What the call does inside is unknown, so only shards of equal
// size are made, and factors that would need data from other devices stay whole.
#include <map>
#include <set>

#include "llvm/ADT/StringExtras.h"
#include "rules.h"
#include "tpu/hlo/infer.h"

namespace tpu::sharding {

namespace {

class Reader {
 public:
  Reader(llvm::StringRef text, const RuleInput& in, OpRule& rule) : text_(text), in_(in), rule_(rule) {}

  /// Empty, or what is wrong.
  std::string read() {
    text_ = text_.trim();
    text_.consume_front("#sdy.op_sharding_rule");
    if (!eat("<") || !tensors(operands_) || !eat("->") || !tensors(results_) || !sizes()) return syntax();
    while (!eat(">")) {
      if (eat(",")) {
        if (!eat("custom") && !eat("is_custom_rule")) return syntax();
        continue;
      }
      FactorKind kind = FactorKind::kReplicate;
      bool known = eat("need_replication") || eat("permutation") || eat("blocked_propagation");
      if (!known && eat("reduction")) {
        known = true;
        kind = FactorKind::kReduction;
      }
      if (!known || !eat("=") || !eat("{")) return syntax();
      while (!eat("}")) {
        eat(",");
        int f;
        if (!factor(f)) return syntax();
        if (f < 0) return "factor '" + last_ + "' has no size";
        rule_.factors[f].kind = kind;
      }
    }
    std::string wrong = place(operands_, true);
    return wrong.empty() ? place(results_, false) : wrong;
  }

 private:
  using Dim = llvm::SmallVector<std::string, 2>;
  using Tensor = std::vector<Dim>;

  bool eat(llvm::StringRef token) {
    text_ = text_.ltrim();
    return text_.consume_front(token);
  }
  std::string syntax() const { return "expected another form before '" + text_.take_front(20).str() + "'"; }

  /// i, z_3
  bool name(std::string& out) {
    text_ = text_.ltrim();
    if (text_.empty() || !llvm::isAlpha(text_[0])) return false;
    out = text_[0];
    text_ = text_.drop_front();
    if (!text_.consume_front("_")) return true;
    llvm::StringRef digits = text_.take_while([](char c) { return llvm::isDigit(c); });
    out += "_" + digits.str();
    text_ = text_.drop_front(digits.size());
    return !digits.empty();
  }

  bool tensors(std::vector<Tensor>& out) {
    if (!eat("(")) return false;
    while (!eat(")")) {
      if (!out.empty() && !eat(",")) return false;
      out.emplace_back();
      if (!eat("[")) return false;
      while (!eat("]")) {
        if (!out.back().empty() && !eat(",")) return false;
        out.back().emplace_back();
        std::string n;
        while (name(n)) out.back().back().push_back(n);
        if (out.back().back().empty()) return false;
      }
    }
    return true;
  }

  bool sizes() {
    if (!eat("{")) return true;  // no factors
    while (!eat("}")) {
      eat(",");
      std::string n;
      int64_t size;
      if (!name(n) || !eat("=")) return false;
      text_ = text_.ltrim();
      if (text_.consumeInteger(10, size)) return false;
      if (size < 1 || !factors_.try_emplace(n, rule_.addFactor(size, FactorKind::kPass, true)).second) return false;
    }
    return true;
  }

  bool factor(int& f) {
    if (!name(last_)) return false;
    auto it = factors_.find(last_);
    f = it == factors_.end() ? -1 : it->second;
    return true;
  }

  std::string place(const std::vector<Tensor>& tensors, bool operands) {
    size_t n = operands ? in_.op.operands.size() : in_.op.results.size();
    std::string side = operands ? "operand" : "result";
    if (tensors.size() != n)
      return std::to_string(tensors.size()) + ' ' + side + "s, the call has " + std::to_string(n);
    for (size_t i = 0; i < n; ++i) {
      const hlo::Type& type = operands ? in_.operand(i) : in_.result(i);
      TensorFactors& to = operands ? rule_.operands[i] : rule_.results[i];
      std::string what = side + ' ' + std::to_string(i) + ' ' + hlo::typeText(in_.m, type);
      if (static_cast<int64_t>(tensors[i].size()) != type.rank())
        return what + " is given " + std::to_string(tensors[i].size()) + " dimensions";
      std::set<std::string> seen;
      for (int64_t d = 0; d < type.rank(); ++d) {
        int64_t size = 1;
        for (const std::string& factor_name : tensors[i][d]) {
          auto it = factors_.find(factor_name);
          if (it == factors_.end()) return "factor '" + factor_name + "' has no size";
          const Factor& f = rule_.factors[it->second];
          if (!operands && f.kind == FactorKind::kReduction) return "reduction factor '" + factor_name + "' stands in " + what;
          if (!seen.insert(factor_name).second) return "factor '" + factor_name + "' stands twice in " + what;
          to[d].push_back(static_cast<int16_t>(it->second));
          if (__builtin_mul_overflow(size, f.size, &size))
            return "dimension " + std::to_string(d) + " of " + what + " is given more than 2^63 elements";
        }
        if (size != type.dims[d])
          return "dimension " + std::to_string(d) + " of " + what + " is given " + std::to_string(size) + " elements";
      }
    }
    return "";
  }

  llvm::StringRef text_;
  const RuleInput& in_;
  OpRule& rule_;
  std::map<std::string, int> factors_;
  std::vector<Tensor> operands_, results_;
  std::string last_;
};

}  // namespace

std::string userRuleProblem(const hlo::Module& m, hlo::OpId id) {
  const hlo::Attr* a = m.findAttr(id, hlo::AttrKey::sharding_rule);
  if (!a) return "";
  OpRule rule;
  RuleInput in{m, id, m.op(id)};
  emptyMaps(in, rule);
  return Reader(a->str, in, rule).read();
}

void customCallRule(const RuleInput& in, OpRule& rule) {
  const hlo::Attr* a = in.m.findAttr(in.id, hlo::AttrKey::sharding_rule);
  if (!a) {
    rule.note = "no sharding rule for this custom call; sdy.sharding_rule can give it one";
    return;
  }
  OpRule read;
  emptyMaps(in, read);
  if (Reader(a->str, in, read).read().empty()) rule = std::move(read);
}

}  // namespace tpu::sharding
