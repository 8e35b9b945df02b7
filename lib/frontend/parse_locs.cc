// Locations: of loc(...) in all its forms only two things are kept, the innermost file position and a name.
//
// callsite(callee at caller) is read as its callee, the innermost frame; fused[a, b] as the first that has a
// file; "name"(inner) as inner. Where nothing has a file, the position in the text stands for it, except with the
// empty name, loc(""): programs of a form without places are written so.
#include "parser.h"

namespace tpu::frontend {

int64_t locNumber(llvm::StringRef name) {
  if (!name.consume_front("loc")) return -1;
  if (name.empty()) return 0;
  int64_t number;
  if (name.size() > 9 || name.getAsInteger(10, number) || number < 0) return -1;
  return number + 1;
}

hlo::LocId Parser::fileLoc(llvm::StringRef file, int64_t line, int64_t column) {
  saw_file_loc_ = true;
  scratch_.assign(file.data(), file.size());
  scratch_ += ':';
  scratch_ += std::to_string(line);
  if (column > 0) {  // columns count from 1: 0 stands for none
    scratch_ += ':';
    scratch_ += std::to_string(column);
  }
  return m.internLoc(scratch_);
}

hlo::LocId Parser::textLoc(std::pair<int, int> line_column) {
  auto [line, column] = line_column;
  scratch_ = base_;
  scratch_ += ':';
  scratch_ += std::to_string(line);
  scratch_ += ':';
  scratch_ += std::to_string(column);
  return m.internLoc(scratch_);
}

bool Parser::optionalLoc(Location& loc) {
  if (!c.acceptWord("loc")) return true;
  return c.expect('(') && locBody(loc, 0) && c.expect(')');
}

bool Parser::locAlias(llvm::StringRef name, Location& loc, int depth) {
  Alias* alias = nullptr;
  int64_t number = locNumber(name);
  if (number >= 0 && number < static_cast<int64_t>(numbered_locs_.size()))
    alias = &numbered_locs_[static_cast<size_t>(number)];
  if (!alias || !alias->text) {
    auto it = aliases_.find("#" + name.str());
    if (it == aliases_.end()) return c.error(Code::kUnknownName, c.p, "unknown location '#" + name + "'");
    alias = &it->second;
  }
  if (alias->state == Alias::kOpen) return c.error("location refers to itself");
  if (alias->state == Alias::kNew) {
    const char* back = c.p;
    alias->state = Alias::kOpen;
    c.p = alias->text;
    Location inner;
    if (!c.expectWord("loc") || !c.expect('(') || !locBody(inner, depth) || !c.expect(')')) return false;
    c.p = back;
    alias->loc = inner;
    alias->state = Alias::kDone;
  }
  loc = alias->loc;
  return true;
}

bool Parser::locBody(Location& loc, int depth) {
  if (++depth > kMaxLocDepth) return c.error(Code::kTooDeep, c.p, "locations nest too deeply");
  char next = c.peek();
  if (next == '#') {
    ++c.p;
    return locAlias(c.word(), loc, depth);
  }
  if (next == '"') {
    llvm::StringRef text;
    if (!c.rawString(text)) return false;
    if (c.accept('(')) {
      Location inner;
      if (!locBody(inner, depth) || !c.expect(')')) return false;
      loc.file = inner.file;
      loc.name = text;
      return true;
    }
    if (!c.accept(':')) {
      loc.name = text;
      loc.nowhere = text.empty();
      return true;
    }
    int64_t line, column, ignored;
    if (!c.digits(line) || !c.expect(':') || !c.digits(column)) return false;
    if (c.acceptWord("to")) {
      if (c.peek() != ':' && !c.digits(ignored)) return false;
      if (!c.expect(':') || !c.digits(ignored)) return false;
    }
    loc.file = fileLoc(text, line, column);
    return true;
  }
  llvm::StringRef word = c.word();
  if (word == "unknown") return true;
  if (word == "callsite") {
    Location callee, caller;
    if (!c.expect('(') || !locBody(callee, depth) || !c.expectWord("at") || !locBody(caller, depth) ||
        !c.expect(')'))
      return false;
    loc = callee.file ? callee : caller;
    return true;
  }
  if (word == "fused") {
    if (c.peek() == '<' && !c.skipGroup()) return false;
    if (!c.expect('[')) return false;
    if (c.accept(']')) return true;
    do {
      Location part;
      if (!locBody(part, depth)) return false;
      if (!loc.file) loc.file = part.file;
      if (loc.name.empty()) loc.name = part.name;
    } while (c.accept(','));
    return c.expect(']');
  }
  return c.error("expected a location");
}

}  // namespace tpu::frontend
