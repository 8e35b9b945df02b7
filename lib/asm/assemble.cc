// Assembly text to a program: bundles with their labels and locations; directives go to Directives.
#include <algorithm>

#include "directives.h"
#include "line_cursor.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "tpu/asm/assembly.h"
#include "tpu/asm/check.h"

namespace tpu::assembly {
namespace {

constexpr int64_t kMaxBundles = int64_t{1} << 24;  // the label field

// A branch whose target is not known yet.
struct Fixup {
  uint32_t bundle, insn;
  int operand;
  std::string label;
  Place place;
};

class Assembler {
 public:
  Assembler(llvm::StringRef file, std::vector<std::string>* files_read)
      : file_(file), directives_(&p_, file, files_read) {
    p_.locs.emplace_back();
  }

  llvm::Expected<isa::Program> run(llvm::StringRef text) {
    if (llvm::Error error =
            readSource(text, file_, [&](const LogicalLine& line) { return this->line(line); }))
      return error;
    if (llvm::Error error = directives_.finish()) return error;
    if (llvm::Error error = resolve()) return error;
    auto chip = target::parseChip(p_.chip_json, "chip description");
    if (!chip) return chip.takeError();
    llvm::Error error = checkProgram(p_, *chip, [&](uint32_t bundle, int insn) {
      const auto& places = places_[bundle];
      return places.empty() ? file_.str() : placeText(file_, places[insn < 0 ? 0 : insn]);
    });
    if (!error) return std::move(p_);
    Diagnostic d = takeDiagnostics(std::move(error))[0];
    if (d.loc.empty()) d.loc = file_.str();
    return fail(std::move(d));
  }

 private:
  llvm::Error failAt(const LogicalLine& line, size_t offset, Code code, const llvm::Twine& text) const {
    return fail(code, placeText(file_, line.place(offset)), text);
  }

  llvm::Error line(const LogicalLine& line) {
    if (directives_.inChip()) return directives_.chipLine(line);
    const llvm::StringRef text = line.text;
    size_t at = text.find_first_not_of(" \t");
    while (at < text.size()) {
      const llvm::StringRef word = text.substr(at).take_while(isWordChar);
      if (word.empty() || at + word.size() >= text.size() || text[at + word.size()] != ':') break;
      if (llvm::Error error = label(line, at, word)) return error;
      at = text.find_first_not_of(" \t", at + word.size() + 1);
    }
    if (at >= text.size()) return llvm::Error::success();
    if (text[at] == '.') return directives_.handle(line, at);
    return bundle(line, at);
  }

  // Labels that start with ".L" are local: they have no place in the program's symbols.
  llvm::Error label(const LogicalLine& line, size_t at, llvm::StringRef name) {
    const bool local = name.starts_with(".L");
    if (!local && !isLabelName(name))
      return failAt(line, at, Code::kBadLabel, "'" + name + "' is not a label name");
    const auto here = static_cast<uint32_t>(p_.bundles.size());
    if (!labels_.try_emplace(name, here).second)
      return failAt(line, at, Code::kBadLabel, "label '" + name + "' is defined twice");
    if (!local) p_.label_at.emplace_back(here, name.str());
    return llvm::Error::success();
  }

  llvm::Error bundle(const LogicalLine& line, size_t at) {
    if (static_cast<int64_t>(p_.bundles.size()) >= kMaxBundles)
      return failAt(line, at, Code::kBadDirective, "more than 16 Mi bundles");
    const llvm::StringRef text = line.text;
    if (text.substr(at).take_while(isWordChar) == "nop") return emptyBundles(line, at);
    std::vector<std::pair<isa::PlacedInstruction, Place>> insns;
    fixups_here_.clear();
    for (size_t begin = at; begin <= text.size();) {
      const size_t end = std::min(text.find(';', begin), text.size());
      const llvm::StringRef segment = text.slice(begin, end).trim();
      // A trailing ';' only continues the line.
      if (!segment.empty()) {
        if (llvm::Error error =
                instruction(line, static_cast<size_t>(segment.data() - text.data()), segment, insns))
          return error;
      } else if (end < text.size()) {
        return failAt(line, begin, Code::kBadDirective, "no instruction before ';'");
      }
      begin = end + 1;
    }
    place(std::move(insns));
    return llvm::Error::success();
  }

  // Puts the instructions of a bundle into the order of slots, the places and fixups with them.
  void place(std::vector<std::pair<isa::PlacedInstruction, Place>> insns) {
    std::vector<uint32_t> order(insns.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return isa::info(insns[a].first.insn.op).slot < isa::info(insns[b].first.insn.op).slot;
    });
    isa::Bundle bundle;
    llvm::SmallVector<Place, 4> places;
    for (uint32_t i : order) {
      for (Fixup& f : fixups_here_)
        if (f.insn == i) {
          fixups_.push_back(f);
          fixups_.back().insn = static_cast<uint32_t>(bundle.insns.size());
        }
      bundle.insns.push_back(insns[i].first);
      places.push_back(insns[i].second);
    }
    p_.bundles.push_back(std::move(bundle));
    places_.push_back(std::move(places));
  }

  llvm::Error emptyBundles(const LogicalLine& line, size_t at) {
    const LineCursor cursor(line, file_);
    const std::vector<Argument> args = cursor.arguments(at + 3);
    int64_t count = 1;
    if (args.size() > 1)
      return failAt(line, at, Code::kBadOperand, "expected 'nop' or 'nop COUNT', alone in its bundle");
    if (!args.empty()) {
      auto n = cursor.numberIn(args[0], 0, 1 << 20);
      if (!n) return n.takeError();
      count = *n;
    }
    p_.bundles.resize(p_.bundles.size() + static_cast<size_t>(count));
    places_.resize(p_.bundles.size());
    return llvm::Error::success();
  }

  llvm::Error instruction(const LogicalLine& line, size_t at, llvm::StringRef segment,
                          std::vector<std::pair<isa::PlacedInstruction, Place>>& insns) {
    isa::PlacedInstruction placed;
    auto body = locationSuffix(line, at, segment, &placed);
    if (!body) return body.takeError();
    names_.clear();
    auto insn = isa::parse(
        *body, [&](size_t offset) { return placeText(file_, line.place(at + offset)); }, &names_);
    if (!insn) return insn.takeError();
    placed.insn = *insn;
    for (int i = 0; i < insn->num_operands; ++i)
      if (insn->operands[i].kind == isa::Operand::kLabel)
        fixups_here_.push_back({static_cast<uint32_t>(p_.bundles.size()), static_cast<uint32_t>(insns.size()),
                                i, names_[0], line.place(at)});
    insns.emplace_back(placed, line.place(at));
    return llvm::Error::success();
  }

  // Takes " !loc" or " !loc:op" off an instruction; without it the location is this line, where wanted.
  llvm::Expected<llvm::StringRef> locationSuffix(const LogicalLine& line, size_t at, llvm::StringRef segment,
                                                 isa::PlacedInstruction* placed) {
    const size_t mark = segment.rfind('!');
    if (mark == llvm::StringRef::npos || mark == 0 ||
        (segment[mark - 1] != ' ' && segment[mark - 1] != '\t')) {
      if (directives_.autoloc()) placed->loc = lineLocation(line.line());
      return segment;
    }
    auto [loc, op] = segment.substr(mark + 1).split(':');
    if (loc.getAsInteger(10, placed->loc) || (!op.empty() && op.getAsInteger(10, placed->op)) ||
        placed->loc >= p_.locs.size())
      return failAt(line, at + mark, Code::kBadOperand,
                    "expected a location row, such as !3 or !3:1, after '.loc 3, ...'");
    return segment.take_front(mark).rtrim();
  }

  uint32_t lineLocation(uint32_t number) {
    auto [it, fresh] = line_locs_.try_emplace(number, static_cast<uint32_t>(p_.locs.size()));
    if (fresh) p_.locs.push_back((file_ + ":" + llvm::Twine(number)).str());
    return it->second;
  }

  llvm::Error resolve() {
    for (const Fixup& f : fixups_) {
      const auto it = labels_.find(f.label);
      if (it == labels_.end())
        return fail(Code::kBadLabel, placeText(file_, f.place), "label '" + f.label + "' is not defined");
      p_.bundles[f.bundle].insns[f.insn].insn.operands[f.operand].imm = it->second;
    }
    return llvm::Error::success();
  }

  isa::Program p_;
  llvm::StringRef file_;
  Directives directives_;
  llvm::StringMap<uint32_t> labels_;
  std::vector<Fixup> fixups_, fixups_here_;
  std::vector<llvm::SmallVector<Place, 4>> places_;  // by bundle and instruction
  std::vector<std::string> names_;
  llvm::DenseMap<uint32_t, uint32_t> line_locs_;  // line to row of locs
};

}  // namespace

llvm::Expected<isa::Program> assemble(llvm::StringRef text, llvm::StringRef name,
                                      std::vector<std::string>* files_read) {
  return Assembler(name, files_read).run(text);
}

}  // namespace tpu::assembly
