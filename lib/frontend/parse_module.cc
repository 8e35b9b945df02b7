// The outside of a program: aliases, meshes, module attributes, functions with their arguments and results.
#include <cstring>

#include "llvm/ADT/StringExtras.h"
#include "parser.h"
#include "rules.h"

namespace tpu::frontend {

Parser::Parser(llvm::StringRef text, llvm::StringRef filename, hlo::Module& module, DiagnosticSink& sink,
               const ReadOptions& options)
    : c(text, filename == "-" || filename.empty() ? llvm::StringRef("<stdin>") : filename,
        options.first_line),
      m(module),
      sink_(sink),
      filename_(filename),
      base_(baseName(filename)),
      any_entry_(options.any_entry) {}

llvm::Error Parser::run() {
  m.source_file = base_;
  scanAliases();
  scanMeshes();
  bool done = !c.failed() && parseTop();
  if (done)
    if (std::string why = chooseEntry(m, any_entry_); !why.empty()) {
      c.p = c.begin;
      done = c.error(Code::kUnknownName, c.begin, why);
    }
  if (!done || c.failed()) return c.takeError();
  applyModuleAliases(m);
  if (!saw_file_loc_)
    sink_.warn(
        Code::kNoLocations, base_,
        "the program has no source locations, so lines of this text stand for them; JAX prints them with "
        "as_text(debug_info=True)");
  return llvm::Error::success();
}

// Definitions stand at the start of a line: "#loc12 = loc(...)", "#map = ...", "!t = ...".
void Parser::scanAliases() {
  const char* line = c.begin;
  while (line < c.end) {
    if (*line == '#' || *line == '!') {
      c.p = line + 1;
      llvm::StringRef name = c.word();
      if (!name.empty() && c.accept('=')) {
        int64_t number = *line == '#' ? locNumber(name) : -1;
        bool in_order = number >= 0 && number <= static_cast<int64_t>(numbered_locs_.size()) + 4096;
        if (in_order) {
          size_t index = static_cast<size_t>(number);
          if (index >= numbered_locs_.size()) numbered_locs_.resize(index + index / 2 + 64);
          numbered_locs_[index].text = c.p;
        } else {
          aliases_[llvm::StringRef(line, 1).str() + name.str()].text = c.p;
        }
      }
    }
    const void* newline = std::memchr(line, '\n', static_cast<size_t>(c.end - line));
    if (!newline) break;
    line = static_cast<const char*>(newline) + 1;
  }
  // Read in the order of their numbers, where each refers to earlier ones, so that nothing nests deeply.
  for (size_t i = 0; i < numbered_locs_.size() && !c.failed(); ++i) {
    if (!numbered_locs_[i].text) continue;
    Location loc;
    c.p = numbered_locs_[i].text;
    locAlias(i == 0 ? "loc" : "loc" + std::to_string(i - 1), loc, 0);
  }
  if (!c.failed()) c.p = c.begin;
}

void Parser::scanMeshes() {
  scanGenericMeshes();
  llvm::StringRef text(c.begin, static_cast<size_t>(c.end - c.begin));
  for (size_t at = text.find("sdy.mesh @"); at != llvm::StringRef::npos && !c.failed();
       at = text.find("sdy.mesh @", at + 1)) {
    // Only where it opens a statement; elsewhere it may be part of a string or comment.
    llvm::StringRef before = text.substr(0, at);
    llvm::StringRef line = before.take_back(200);
    line = line.substr(line.rfind('\n') + 1);
    if (!line.trim().empty() && !line.rtrim().ends_with("{")) continue;
    c.p = c.begin + at + std::strlen("sdy.mesh ");
    hlo::Mesh parsed;
    if (!symbol(parsed.name) || !c.expect('=') || !mesh(parsed)) return;
    if (!addMesh(std::move(parsed), c.begin + at)) return;
  }
  if (!c.failed()) c.p = c.begin;
}

bool Parser::addMesh(hlo::Mesh mesh, const char* at) {
  const hlo::MeshId id(static_cast<uint32_t>(m.meshes.size()));
  if (!meshes_.try_emplace(mesh.name, id).second)
    return c.error(Code::kRepeatedName, at, "mesh '@" + mesh.name + "' is defined twice");
  m.meshes.push_back(std::move(mesh));
  return true;
}

bool Parser::parseTop() {
  bool any = false;
  while (!c.atEnd()) {
    if (*c.p == '#' || *c.p == '!') {  // an alias: read by scanAliases
      while (c.p < c.end && *c.p != '\n') ++c.p;
      continue;
    }
    if (c.accept("{-#")) {  // resources: read where a constant refers to one
      const char* close = std::strstr(c.p, "#-}");
      if (!close) return c.error("resources do not end");
      c.p = close + 3;
      continue;
    }
    if (c.acceptWord("module") || c.acceptWord("builtin.module")) {
      if (any) return c.error("a program is one module");
      if (!parseModule()) return false;
    } else if (c.acceptWord("func.func")) {
      if (!parseFunc()) return false;
    } else if (c.acceptWord("sdy.mesh")) {
      if (!passMesh()) return false;
    } else if (c.peek() == '"') {
      if (any) return c.error("a program is one module");
      if (!genericOutside()) return false;
    } else {
      return c.error("expected a module");
    }
    any = true;
  }
  return any || c.error("expected a module");
}

bool Parser::parseModule() {
  if (c.peek() == '@' && !symbol(m.name)) return false;
  if (c.acceptWord("attributes") && !parseModuleAttrs()) return false;
  if (!c.expect('{')) return false;
  while (!c.accept('}')) {
    c.blanks();
    const char* at = c.p;
    if (c.acceptWord("func.func")) {
      if (!parseFunc()) return false;
    } else if (c.acceptWord("sdy.mesh")) {
      if (!passMesh()) return false;
    } else {
      llvm::StringRef word = c.word();
      if (word.empty()) return c.error("expected a function");
      return c.error(Code::kUnknownOp, at, "unknown operation '" + word + "' in a module");
    }
  }
  Location loc;
  return optionalLoc(loc);
}

// The rest of a mesh that scanMeshes has read.
bool Parser::passMesh() {
  std::string name;
  if (!symbol(name) || !c.expect('=') || !c.skipGroup()) return false;
  if (c.peek() == '{' && !c.skipGroup()) return false;
  Location loc;
  return optionalLoc(loc);
}

bool Parser::parseModuleAttrs() {
  if (!c.expect('{')) return false;
  if (c.accept('}')) return true;
  do {
    std::string name;
    if (!attrName(name)) return false;
    if (!c.accept('=')) {
      m.attrs.push_back({name, ""});
      continue;
    }
    if (name == "sym_name") {  // of the generic form
      if (!c.string(m.name)) return false;
      continue;
    }
    if (name == "mhlo.num_partitions" || name == "mhlo.num_replicas") {
      int64_t& count = name == "mhlo.num_partitions" ? m.num_partitions : m.num_replicas;
      if (!intValue(count)) return false;
      if (count < 1 || count > (int64_t{1} << 31)) return c.error("bad number of devices");
      continue;
    }
    c.blanks();
    std::string text = c.balanced().str();
    if (c.failed()) return false;
    m.attrs.push_back({name, text});
  } while (c.accept(','));
  return c.expect('}');
}

bool Parser::parsePortAttrs(hlo::Port& port) {
  if (!c.expect('{')) return false;
  if (c.accept('}')) return true;
  do {
    c.blanks();
    const char* start = c.p;
    std::string name;
    if (*c.p == '"') {
      if (!c.string(name)) return false;
    } else {
      name = c.word().str();
    }
    if (name.empty()) return c.error("expected an attribute name");
    bool has_value = c.accept('=');
    if (name == "sdy.sharding" && has_value) {
      if (!sharding(port.sharding)) return false;
    } else if (name == "tf.aliasing_output" && has_value) {
      int64_t output;
      if (!intValue(output)) return false;
      port.alias = static_cast<int>(output);
    } else if (name == "jax.buffer_donor") {
      int64_t donor = 1;
      if (has_value && !intValue(donor)) return false;
      port.donated = donor != 0;
    } else if ((name == "jax.result_info" || name == "jax.arg_info") && has_value) {
      std::string text;
      if (!c.string(text)) return false;
      if (!text.empty()) port.name = m.internString(text);
    } else {
      if (has_value) c.balanced();
      if (c.failed()) return false;
      if (!port.attrs.empty()) port.attrs += ", ";
      port.attrs += llvm::StringRef(start, static_cast<size_t>(c.p - start)).rtrim();
    }
  } while (c.accept(','));
  return c.expect('}');
}

void Parser::describeArg(ValueId arg, hlo::Port& port, const Location& loc) {
  // JAX names arguments by a location without a file: loc("params['w']").
  if (!loc.file && !loc.name.empty()) {
    Cursor quoted = c;
    quoted.p = loc.name.data() - 1;
    std::string text;
    if (quoted.string(text)) port.name = m.internString(text);
  }
  m.value(arg).sharding = port.sharding;
  m.value(arg).name = port.name;
}

bool Parser::parseArgs(hlo::FuncId func) {
  if (!c.expect('(')) return false;
  if (c.accept(')')) return true;
  do {
    c.blanks();
    const char* at = c.p;
    llvm::StringRef name;
    if (*c.p == '%' && (!valueName(name) || !c.expect(':'))) return false;
    TypeId t = type();
    if (c.failed()) return false;
    hlo::Port port;
    if (c.peek() == '{' && !parsePortAttrs(port)) return false;
    Location loc;
    if (!optionalLoc(loc)) return false;
    ValueId arg = m.addArg(m.func(func).body, t, placeOf(loc, at));
    describeArg(arg, port, loc);
    m.funcs[func.v].arg_ports.push_back(std::move(port));
    if (!name.empty()) bind(name, arg, 1, at);
  } while (c.accept(','));
  return c.expect(')');
}

bool Parser::parseResults(hlo::FuncId func) {
  if (!c.accept("->")) return true;
  if (!c.accept('(')) {
    m.funcs[func.v].result_types.push_back(type());
    m.funcs[func.v].result_ports.emplace_back();
    return !c.failed();
  }
  if (c.accept(')')) return true;
  do {
    TypeId t = type();
    if (c.failed()) return false;
    hlo::Port port;
    if (c.peek() == '{' && !parsePortAttrs(port)) return false;
    m.funcs[func.v].result_types.push_back(t);
    m.funcs[func.v].result_ports.push_back(std::move(port));
  } while (c.accept(','));
  return c.expect(')');
}

bool Parser::parseFunc() {
  c.blanks();
  const char* at = c.p;
  bool is_private = c.acceptWord("private");
  if (!is_private) c.acceptWord("public");
  std::string name;
  if (!symbol(name)) return false;
  if (m.findFunc(name)) return c.error(Code::kRepeatedName, at, "function '@" + name + "' is defined twice");
  std::pair<int, int> place = c.lineColumn(at);
  func_ = m.addFunc(name, is_private);
  numbered_.assign(numbered_.size(), Binding());
  named_.clear();
  size_t mark = openScope();
  if (!parseArgs(func_) || !parseResults(func_)) return false;
  if (c.acceptWord("attributes") && !c.skipGroup()) return false;
  if (!c.accept('{')) return c.error(Code::kSyntaxError, at, "function '@" + name + "' has no body");
  if (!regionBody(m.func(func_).body)) return false;
  closeScope(mark);
  Location loc;
  if (!optionalLoc(loc)) return false;
  m.funcs[func_.v].loc = placeOf(loc, place);
  return true;
}

}  // namespace tpu::frontend
