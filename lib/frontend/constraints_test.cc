// Each constraint of the specification, broken alone: testdata/constraints holds a program per operation and
// what to change in it.
#include <filesystem>
#include <map>
#include <set>

#include "llvm/Support/MemoryBuffer.h"
#include "testing.h"

namespace tpu::frontend {
namespace {

struct Break {
  std::string label;  // "C4"
  std::string why_not;
  std::vector<std::pair<std::string, std::string>> replace;
};
struct Entry {
  std::string name, signature, before, module_attrs, op;
  std::vector<Break> breaks;
};

std::string replaced(std::string text, llvm::StringRef from, llvm::StringRef to) {
  for (size_t at = 0; (at = text.find(from.str(), at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to.str());
  return text;
}

std::string program(const Entry& e, const Break* b) {
  std::string text = "module @m attributes {" + e.module_attrs + "} {\n" + e.before + "\nfunc.func @main" +
                     e.signature + " {\n" + e.op + "\nreturn\n}\n}\n";
  if (b)
    for (const auto& [from, to] : b->replace) {
      EXPECT_NE(text.find(from), std::string::npos) << e.name << ": nothing reads `" << from << "`";
      text = replaced(text, from, to);
    }
  return text;
}

// "C4: `a` -> `b`, `c` -> `d`" or "C9: not checked: why".
Break readBreak(llvm::StringRef line) {
  auto [label, rest] = line.split(": ");
  Break b{label.str(), "", {}};
  if (rest.consume_front("not checked: ")) {
    b.why_not = rest.str();
    return b;
  }
  llvm::SmallVector<llvm::StringRef, 8> parts;
  rest.split(parts, '`');
  for (size_t i = 1; i + 2 < parts.size(); i += 4) b.replace.push_back({parts[i].str(), parts[i + 2].str()});
  return b;
}

std::vector<Entry> readEntries(llvm::StringRef text) {
  std::vector<Entry> all;
  while (!text.empty()) {
    llvm::StringRef line;
    std::tie(line, text) = text.split('\n');
    if (line.consume_front("== ")) {
      all.emplace_back().name = line.str();
    } else if (all.empty() || line.empty()) {
      continue;
    } else if (line.starts_with("(")) {
      all.back().signature = line.str();
    } else if (line.consume_front("+ ")) {
      all.back().before = line.str();
    } else if (line.consume_front("@ ")) {
      all.back().module_attrs = line.str();
    } else if (line.starts_with("%")) {
      all.back().op = line.str();
    } else {
      all.back().breaks.push_back(readBreak(line));
    }
  }
  return all;
}

std::map<std::string, std::vector<Entry>> allEntries() {
  std::map<std::string, std::vector<Entry>> files;
  const std::filesystem::path dir = std::filesystem::path(TPU_SOURCE_DIR) / "testdata/constraints";
  for (const auto& file : std::filesystem::directory_iterator(dir)) {
    if (file.path().extension() != ".txt") continue;
    auto buffer = llvm::MemoryBuffer::getFile(file.path().string());
    if (buffer) files[file.path().stem().string()] = readEntries((*buffer)->getBuffer());
  }
  return files;
}

TEST(Constraints, EachIsRefusedByItsNumber) {
  size_t broken = 0;
  for (const auto& [file, entries] : allEntries()) {
    for (const Entry& e : entries) {
      EXPECT_EQ(refusal(program(e, nullptr)), "accepted") << file << ", " << e.name;
      for (const Break& b : e.breaks) {
        if (!b.why_not.empty()) continue;
        const std::string found = refusal(program(e, &b));
        EXPECT_TRUE(llvm::StringRef(found).ends_with("[" + e.name + " " + b.label + "]"))
            << file << ", " << e.name << " " << b.label << ": " << found << "\n"
            << program(e, &b);
        ++broken;
      }
    }
  }
  EXPECT_GT(broken, 500u);
}

// Numbers run from 1 without a gap: whatever is not checked is named with the reason.
TEST(Constraints, NoneIsLeftOut) {
  for (const auto& [file, entries] : allEntries())
    for (const Entry& e : entries) {
      std::set<size_t> numbers;
      for (const Break& b : e.breaks)
        if (b.label[0] == 'C') numbers.insert(std::stoul(b.label.substr(1)));
      if (!numbers.empty()) {
        EXPECT_EQ(*numbers.rbegin(), numbers.size()) << file << ", " << e.name;
      }
    }
}

TEST(Constraints, EveryOperationOfTheSpecificationIsThere) {
  std::set<std::string> names;
  for (const auto& [file, entries] : allEntries())
    for (const Entry& e : entries) names.insert("stablehlo." + e.name);
  // Not in the specification, or without a constraint in it.
  const std::set<std::string> without = {"stablehlo.broadcast",
                                         "stablehlo.create_token",
                                         "stablehlo.cross-replica-sum",
                                         "stablehlo.custom_call",
                                         "stablehlo.dot",
                                         "stablehlo.einsum",
                                         "stablehlo.real_dynamic_slice",
                                         "stablehlo.set_dimension_size",
                                         "stablehlo.torch_index_select",
                                         "stablehlo.unary_einsum"};
  const llvm::StringRef all[] = {
#define TPU_HLO_OP(id, name, ...) name,
#include "tpu/hlo/ops.def"
  };
  for (llvm::StringRef name : all)
    if (name.starts_with("stablehlo.") && !without.count(name.str())) {
      EXPECT_TRUE(names.count(name.str())) << name.str();
    }
}

}  // namespace
}  // namespace tpu::frontend
