// The check and interpreter dialects of StableHLO's own tests: expectations, run_parallel, print and probe.
// They become custom calls of their full names, so that nothing but the evaluator needs to know them.
#include <charconv>
#include <cstring>

#include "parser.h"

namespace tpu::frontend {

bool isTestDialect(llvm::StringRef name) {
  return name.starts_with("check.") || name.starts_with("interpreter.");
}

// "tolerance = 0.1", "max_ulp_difference = 18446744073709551615", "iter = 1", "probe_id = "p"".
bool Parser::checkKeyword(OpId op, llvm::StringRef word, const char* at) {
  if (word == "iter") word = "iteration";
  const std::optional<AttrKey> key = hlo::findAttrKey(word);
  if (!key) return c.error(Code::kSyntaxError, at, "unknown keyword '" + word + "'");
  in_keyword_ = true;
  const bool done = attrValue(op, *key);
  in_keyword_ = false;
  if (!done) return false;
  // The attribute's own type may follow: "tolerance = 0.001 : f64 : tensor<2xf32>".
  Cursor next = c;
  if (next.accept(':') && (next.acceptWord("f64") || next.acceptWord("ui64") || next.acceptWord("i64")))
    c.p = next.p;
  return true;
}

// Unsigned numbers of 64 bits keep their bits.
bool Parser::unsignedValue(int64_t& value) {
  c.blanks();
  uint64_t bits;
  const auto [rest, status] = std::from_chars(c.p, c.end, bits);
  if (status != std::errc()) return c.error("expected a number");
  c.p = rest;
  value = static_cast<int64_t>(bits);
  return maybeTypeSuffix();
}

// "[[@a, @b], [@c, @d]]": the grid of run_parallel, a row per replica.
bool Parser::programGrid(OpId op) {
  std::vector<std::string> all;
  int64_t columns = -1;
  c.blanks();
  const char* at = c.p;
  if (!c.expect('[')) return false;
  if (!c.accept(']')) {
    do {
      std::vector<std::string> row;
      if (!strings(row)) return false;
      if (columns >= 0 && columns != static_cast<int64_t>(row.size()))
        return c.error(Code::kSyntaxError, at, "rows of 'programs' differ in length");
      columns = static_cast<int64_t>(row.size());
      all.insert(all.end(), row.begin(), row.end());
    } while (c.accept(','));
    if (!c.expect(']')) return false;
  }
  if (columns < 1) return c.error(Code::kSyntaxError, at, "'programs' is empty");
  m.setStrings(op, AttrKey::programs, all);
  m.setInt(op, AttrKey::grid_partitions, columns);
  return true;
}

// The dialect's defaults; the same checks as custom calls have others.
void Parser::checkDefaults(OpId op) {
  const llvm::StringRef name = m.getString(op, AttrKey::call_target_name);
  if (name.starts_with("check.expect_almost_eq") && !m.has(op, AttrKey::tolerance)) {
    hlo::Attr tolerance;
    tolerance.key = AttrKey::tolerance;
    tolerance.kind = hlo::AttrKind::kFloat;
    tolerance.f = 1e-4;
    m.setAttr(op, std::move(tolerance));
  }
  if (name == "check.expect_close" && !m.has(op, AttrKey::max_ulp_difference))
    m.setInt(op, AttrKey::max_ulp_difference, 1);
}

// What stands behind the operands of a check or an interpreter op.
bool Parser::prettyCheck(OpId op, bool comma) {
  if (comma && llvm::StringRef(c.p, static_cast<size_t>(c.end - c.p)).starts_with("dense")) {
    hlo::Literal value;  // check.expect_eq_const %x, dense<...> : tensor<...>
    if (!literal(value)) return false;
    m.setLiteral(op, m.addLiteral(std::move(value)));
    comma = c.accept(',');
  }
  if (comma && !keywords(op)) return false;
  if (c.peek() == '{' && c.accept('{') && !attrEntries(op, '}')) return false;
  c.blanks();
  const char* at = c.p;
  if (!c.accept(':')) return true;
  llvm::SmallVector<TypeId, 2> types;
  if (c.peek() == '{' && c.accept('{') && !attrEntries(op, '}')) return false;
  if (!bareTypes(types)) return false;
  if (m.op(op).operands.empty()) return c.error(Code::kSyntaxError, at, "a type without an operand");
  if (types[0] != m.value(m.op(op).operands[0]).type)
    return c.error("operand 0 has another type than the one stated");
  const llvm::StringRef name = m.getString(op, AttrKey::call_target_name);
  if (name.starts_with("interpreter.")) m.addResult(op, types[0]);
  return true;
}

}  // namespace tpu::frontend
