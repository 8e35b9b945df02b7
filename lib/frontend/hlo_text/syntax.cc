#include "syntax.h"

#include <map>

namespace tpu::frontend::hlo_text {
namespace {

using llvm::StringRef;

bool isNameChar(char c) { return isWordChar(c) || c == ':' || c == '<' || c == '>' || c == '/'; }

// A name, with or without '%'. Does not take the "->" of a signature.
StringRef readName(Cursor& c) {
  c.blanks();
  if (*c.p == '%') ++c.p;
  const char* start = c.p;
  while (c.p < c.end && isNameChar(*c.p) && !(c.p[0] == '-' && c.p[1] == '>')) ++c.p;
  return StringRef(start, static_cast<size_t>(c.p - start));
}

// replica_groups=mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'a'}: the mesh, the order of its devices and the axes are one
// value. Passes over the comma between them.
bool meshGoesOn(Cursor& c) {
  const StringRef rest(c.p, static_cast<size_t>(c.end - c.p));
  if (rest.starts_with(" {")) return true;
  if (!rest.starts_with(", device_ids=(")) return false;
  c.p += StringRef(", device_ids").size();
  return true;
}

// Up to a ',', a blank or a closing bracket, outside of brackets and strings.
StringRef readValue(Cursor& c) {
  while (*c.p == ' ') ++c.p;
  const char* start = c.p;
  int depth = 0;
  for (; c.p < c.end; ++c.p) {
    const char ch = *c.p;
    if (ch == '"') {
      for (++c.p; c.p < c.end && *c.p != '"'; ++c.p)
        if (*c.p == '\\') ++c.p;
      if (c.p >= c.end) {
        c.p = c.end;
        break;
      }
    } else if (ch == '{' || ch == '(' || ch == '[') {
      ++depth;
    } else if (ch == '}' || ch == ')' || ch == ']') {
      if (depth-- == 0) break;
    } else if (depth == 0 && StringRef(start, static_cast<size_t>(c.end - start)).starts_with("mesh[") && meshGoesOn(c)) {
      continue;
    } else if (depth == 0 && (ch == ',' || ch == ' ' || ch == '\n' || ch == '\r' || ch == '\t')) {
      break;
    }
  }
  return StringRef(start, static_cast<size_t>(c.p - start)).rtrim();
}

// ", name=value" any number of times.
template <class List>
bool readAttributes(Cursor& c, List& out) {
  for (;;) {
    while (*c.p == ' ' || *c.p == '\t' || *c.p == '\r') ++c.p;
    if (*c.p != ',') return true;
    ++c.p;
    const StringRef name = c.word();
    if (name.empty()) return c.error("expected an attribute");
    if (!c.accept('=')) {
      out.push_back({name, ""});
      continue;
    }
    out.push_back({name, readValue(c)});
    if (c.failed()) return false;
  }
}

bool readLayout(Cursor& c, Shape& out) {
  if (*c.p != '{') return true;
  const char* start = c.p;
  if (!c.skipGroup()) return false;
  StringRef text(start + 1, static_cast<size_t>(c.p - start - 2));
  if (!readInts(text.split(':').first, out.minor_to_major)) out.minor_to_major.clear();
  return true;
}

bool readOperands(Cursor& c, Instruction& out) {
  const char* start = c.p;
  if (!c.skipGroup()) return false;
  out.inside = StringRef(start + 1, static_cast<size_t>(c.p - start - 2)).trim();
  if (out.opcode == "constant" || out.opcode == "parameter") return true;
  for (StringRef part : splitList(out.inside)) {
    // "f32[2,3]{1,0} %name" or "name": the name is the last word.
    const size_t space = part.find_last_of(" \t\n)");
    StringRef name = space == StringRef::npos ? part : part.drop_front(space + 1);
    name.consume_front("%");
    out.operands.push_back(name);
  }
  return true;
}

bool readInstruction(Cursor& c, Computation& computation) {
  Instruction out;
  out.root = c.acceptWord("ROOT");
  c.blanks();
  out.at = c.p;
  out.name = readName(c);
  if (out.name.empty()) return c.error("expected an instruction");
  if (!c.expect('=') || !readShape(c, out.shape)) return false;
  out.opcode = c.word();
  if (out.opcode.empty()) return c.error("expected an operation");
  if (c.peek() != '(') return c.error("expected '('");
  if (!readOperands(c, out) || !readAttributes(c, out.attributes)) return false;
  const auto number = static_cast<uint32_t>(computation.instructions.size());
  if (!computation.index.try_emplace(out.name, number).second)
    return c.error(Code::kRepeatedName, out.at, "'" + out.name + "' is defined twice");
  if (out.root) computation.root = number;
  computation.instructions.push_back(std::move(out));
  return true;
}

// "[ENTRY] name [(parameters) -> shape] { instructions }", then perhaps attributes.
bool readComputation(Cursor& c, Text& text) {
  Computation out;
  out.entry = c.acceptWord("ENTRY");
  c.blanks();
  out.at = c.p;
  out.name = readName(c);
  if (out.name.empty()) return c.error("expected a computation");
  if (c.peek() == '(' && !c.skipGroup()) return false;
  Shape ignored;
  if (c.accept("->") && !readShape(c, ignored)) return false;
  if (!c.expect('{')) return false;
  while (!c.accept('}')) {
    if (c.failed() || !readInstruction(c, out)) return false;
  }
  if (out.instructions.empty()) return c.error(Code::kSyntaxError, out.at, "computation '" + out.name + "' is empty");
  if (!llvm::any_of(out.instructions, [](const Instruction& i) { return i.root; }))
    out.root = static_cast<uint32_t>(out.instructions.size() - 1);
  llvm::SmallVector<Attribute, 2> attributes;
  if (!readAttributes(c, attributes)) return false;
  if (!text.by_name.try_emplace(out.name, static_cast<uint32_t>(text.computations.size())).second)
    return c.error(Code::kRepeatedName, out.at, "computation '" + out.name + "' is defined twice");
  text.computations.push_back(std::move(out));
  return true;
}

// The tables that newer dumps put before the computations: file names, function names, locations, frames.
class FrameTables {
 public:
  bool read(Cursor& c) {
    std::map<int64_t, std::string> functions;  // not shown
    if (c.acceptWord("FileNames") && !names(c, files_)) return false;
    if (c.acceptWord("FunctionNames") && !names(c, functions)) return false;
    if (c.acceptWord("FileLocations") && !rows(c, locations_)) return false;
    if (c.acceptWord("StackFrames") && !rows(c, frames_)) return false;
    return true;
  }

  std::vector<std::string> texts() const {
    std::vector<std::string> out;
    for (const auto& [id, row] : frames_) {
      const auto found = locations_.find(field(row, "file_location_id"));
      if (found == locations_.end() || id < 0 || id > 1 << 24) continue;
      const Row& place = found->second;
      const auto file = files_.find(field(place, "file_name_id"));
      if (file == files_.end()) continue;
      if (static_cast<int64_t>(out.size()) <= id) out.resize(static_cast<size_t>(id) + 1);
      out[static_cast<size_t>(id)] = file->second + ":" + std::to_string(field(place, "line")) + ":" +
                                     std::to_string(field(place, "column"));
    }
    return out;
  }

 private:
  using Row = std::map<std::string, int64_t>;
  static int64_t field(const Row& row, const char* name) {
    const auto found = row.find(name);
    return found == row.end() ? 0 : found->second;
  }
  // "1 "path/model.py"" any number of times.
  static bool names(Cursor& c, std::map<int64_t, std::string>& out) {
    int64_t id;
    while (isDigit(c.peek())) {
      std::string name;
      if (!c.digits(id) || !c.string(name)) return false;
      out[id] = baseName(name);
    }
    return true;
  }
  // "1 {file_name_id=1 line=64 ...}" any number of times.
  static bool rows(Cursor& c, std::map<int64_t, Row>& out) {
    while (isDigit(c.peek())) {
      int64_t id, value;
      if (!c.digits(id) || !c.expect('{')) return false;
      Row& row = out[id];
      while (!c.accept('}')) {
        const std::string name = c.word().str();
        if (name.empty() || !c.expect('=') || !c.integer(value)) return c.error("bad table of source lines");
        row[name] = value;
      }
    }
    return true;
  }
  std::map<int64_t, std::string> files_;
  std::map<int64_t, Row> locations_, frames_;
};

template <class List>
StringRef valueOf(const List& attributes, StringRef name) {
  for (const Attribute& a : attributes)
    if (a.name == name) return a.value;
  return "";
}

}  // namespace

StringRef Instruction::get(StringRef name) const { return valueOf(attributes, name); }
StringRef Text::get(StringRef name) const { return valueOf(attributes, name); }

bool readShape(Cursor& c, Shape& out, int depth) {
  if (depth > 64) return c.error(Code::kTooDeep, c.p, "tuples nest too deeply");
  if (c.accept('(')) {
    out.kind = Shape::kTuple;
    if (c.accept(')')) return true;
    do {
      if (!readShape(c, out.elements.emplace_back(), depth + 1)) return false;
    } while (c.accept(','));
    return c.expect(')');
  }
  c.blanks();
  const char* at = c.p;
  const StringRef name = c.word();
  if (!c.expect('[')) return false;
  if (name == "token" || name == "opaque") {
    out.kind = Shape::kToken;
    return c.expect(']') && readLayout(c, out);
  }
  const auto element = parseElementType(name);
  if (!element) return c.error(Code::kSyntaxError, at, "unknown type '" + name + "'");
  out.element = *element;
  if (!c.accept(']')) {
    do {
      int64_t size;
      if (c.accept("<=")) return c.error(Code::kUnsupportedFormat, at, "dimensions of dynamic size are not read");
      if (!c.digits(size)) return false;
      out.dims.push_back(size);
    } while (c.accept(','));
    if (!c.expect(']')) return false;
  }
  int64_t elements = 1;
  for (int64_t d : out.dims)
    if (__builtin_mul_overflow(elements, d, &elements) || elements > int64_t{1} << 48 || out.dims.size() > 64)
      return c.error(Code::kSyntaxError, at, "the array is too large");
  return readLayout(c, out);
}

bool readInts(StringRef text, llvm::SmallVectorImpl<int64_t>& out) {
  text = text.trim();
  if (text.consume_front("{") && !text.consume_back("}")) return false;
  if (text.trim().empty()) return true;
  while (!text.empty()) {
    const auto [head, tail] = text.split(',');
    int64_t value;
    if (head.trim().getAsInteger(10, value)) return false;
    out.push_back(value);
    text = tail;
  }
  return true;
}

llvm::SmallVector<StringRef, 4> splitList(StringRef text) {
  llvm::SmallVector<StringRef, 4> out;
  text = text.trim();
  if (text.starts_with("{") && text.ends_with("}")) text = text.drop_front().drop_back().trim();
  if (text.empty()) return out;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char ch = text[i];
    if (ch == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
    } else if (ch == '{' || ch == '(' || ch == '[') {
      ++depth;
    } else if (ch == '}' || ch == ')' || ch == ']') {
      --depth;
    } else if (ch == ',' && depth == 0) {
      out.push_back(text.slice(start, i).trim());
      start = i + 1;
    }
  }
  out.push_back(text.drop_front(start).trim());
  return out;
}

std::string unquoted(StringRef text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return text.str();
  std::string out;
  text = text.drop_front().drop_back();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    out += text[i];
  }
  return out;
}

bool readText(Cursor& c, Text& out) {
  if (!c.expectWord("HloModule")) return false;
  out.name = readName(c);
  if (!readAttributes(c, out.attributes)) return false;
  FrameTables frames;
  if (!frames.read(c)) return false;
  while (!c.atEnd())
    if (!readComputation(c, out)) return false;
  out.frames = frames.texts();
  if (out.computations.empty()) return c.error("the module has no computation");
  return !c.failed();
}

}  // namespace tpu::frontend::hlo_text
