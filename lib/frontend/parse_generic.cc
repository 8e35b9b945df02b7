// The generic form of what stands around operations, as printers give it with print_generic_op_form:
//
//   "builtin.module"() <{sym_name = "m"}> ({
//     "func.func"() <{function_type = (t) -> t, sym_name = "main", arg_attrs = [{..}]}> ({
//     ^bb0(%a: t):
//       ...
//     }) : () -> ()
//   }) {mhlo.num_partitions = 1 : i32} : () -> ()
//
// Attributes of older printers stand behind the region: what a function is called and takes is read first.
#include "parser.h"

namespace tpu::frontend {

namespace {

constexpr llvm::StringLiteral kMesh = "\"sdy.mesh\"()";

}  // namespace

// "sdy.mesh"() <{mesh = #sdy.mesh<["x"=4]>, sym_name = "mesh"}> : () -> ()
void Parser::scanGenericMeshes() {
  llvm::StringRef text(c.begin, static_cast<size_t>(c.end - c.begin));
  for (size_t at = text.find(kMesh); at != llvm::StringRef::npos; at = text.find(kMesh, at + 1)) {
    llvm::StringRef line = text.substr(0, at).take_back(200);
    if (!line.substr(line.rfind('\n') + 1).trim().empty()) continue;  // part of a string or comment
    c.p = c.begin + at + kMesh.size();
    hlo::Mesh parsed;
    const bool properties = c.accept('<');
    if (!c.expect('{')) return;
    do {
      std::string name;
      if (!attrName(name) || !c.expect('=')) return;
      if (name == "sym_name") {
        if (!c.string(parsed.name)) return;
      } else if (name != "mesh") {
        c.balanced();
      } else if (c.accept("#sdy.mesh") ? !mesh(parsed) : !c.expect("#sdy.mesh")) {
        return;
      }
    } while (c.accept(','));
    if (!c.expect('}') || (properties && !c.expect('>')) || !addMesh(std::move(parsed), c.begin + at)) return;
  }
  if (!c.failed()) c.p = c.begin;
}

// What stands outside of functions, its name in quotes.
bool Parser::genericOutside() {
  c.blanks();
  const char* at = c.p;
  llvm::StringRef name;
  if (!c.rawString(name) || !c.expect('(') || !c.expect(')')) return false;
  if (name == "builtin.module") return genericModule();
  if (name == "func.func") return genericFunc(at);
  if (name != "sdy.mesh") return c.error(Code::kUnknownOp, at, "unknown operation '" + name + "' in a module");
  Location loc;
  return c.skipGroup() && genericEnd(loc);
}

// Attributes of the older form may follow, then the type, which says nothing, and the place.
bool Parser::genericEnd(Location& loc) {
  return c.expect(':') && c.expect('(') && c.expect(')') && c.expect("->") && c.expect('(') && c.expect(')') &&
         optionalLoc(loc);
}

bool Parser::genericModule() {
  if (in_module_) return c.error("a program is one module");
  in_module_ = true;
  if (c.accept('<') && (!parseModuleAttrs() || !c.expect('>'))) return false;
  if (!c.expect('(') || !c.expect('{')) return false;
  if (c.accept('^')) {
    c.word();
    if (!c.expect(':')) return false;
  }
  while (!c.accept('}')) {
    if (c.peek() != '"') return c.error("expected a function");
    if (!genericOutside()) return false;
  }
  Location loc;
  return c.expect(')') && (c.peek() != '{' || parseModuleAttrs()) && genericEnd(loc);
}

bool Parser::portAttrList(std::vector<hlo::Port>& ports) {
  if (!c.expect('[')) return false;
  if (c.accept(']')) return true;
  do
    if (!parsePortAttrs(ports.emplace_back())) return false;
  while (c.accept(','));
  return c.expect(']');
}

bool Parser::genericFuncAttrs(GenericFunc& func) {
  if (!c.expect('{')) return false;
  if (c.accept('}')) return true;
  do {
    std::string name, visibility;
    if (!attrName(name)) return false;
    if (!c.accept('=')) continue;
    bool done = true;
    if (name == "sym_name") {
      done = c.string(func.name);
    } else if (name == "sym_visibility") {
      done = c.string(visibility);
      func.is_private = visibility == "private";
    } else if (name == "function_type") {
      done = c.peek() == '(' && typeList(func.args) && c.expect("->") && typeList(func.results);
      if (!done) return c.failed() ? false : c.error("expected a function's type");
    } else if (name == "arg_attrs") {
      done = portAttrList(func.arg_ports);
    } else if (name == "res_attrs") {
      done = portAttrList(func.result_ports);
    } else {
      c.balanced();
    }
    if (!done || c.failed()) return false;
  } while (c.accept(','));
  return c.expect('}');
}

bool Parser::genericFunc(const char* at) {
  GenericFunc func;
  const std::pair<int, int> place = c.lineColumn(at);
  if (c.accept('<') && (!genericFuncAttrs(func) || !c.expect('>'))) return false;
  if (!c.expect('(')) return false;
  c.blanks();
  const char* body = c.p;
  if (!c.skipGroup() || !c.expect(')')) return false;
  if (c.peek() == '{' && !genericFuncAttrs(func)) return false;
  if (func.name.empty()) return c.error(Code::kSyntaxError, at, "function without a name");
  if (m.findFunc(func.name)) return c.error(Code::kRepeatedName, at, "function '@" + func.name + "' is defined twice");
  if ((!func.arg_ports.empty() && func.arg_ports.size() != func.args.size()) ||
      (!func.result_ports.empty() && func.result_ports.size() != func.results.size()))
    return c.error(Code::kSyntaxError, at, "attributes for another number of arguments or results than there are");
  Location loc;
  if (!genericEnd(loc)) return false;
  const char* end = c.p;

  func_ = m.addFunc(func.name, func.is_private);
  func.arg_ports.resize(func.args.size());
  func.result_ports.resize(func.results.size());
  m.funcs[func_.v].loc = placeOf(loc, place);
  m.funcs[func_.v].result_types.assign(func.results.begin(), func.results.end());
  m.funcs[func_.v].result_ports = std::move(func.result_ports);
  m.funcs[func_.v].arg_ports = std::move(func.arg_ports);
  numbered_.assign(numbered_.size(), Binding());
  named_.clear();
  c.p = body;
  const RegionId region = m.func(func_).body;
  const size_t mark = openScope();
  if (!c.expect('{')) return false;
  if (c.accept('^')) {
    c.word();
    if (c.accept('(') && !blockArgs(region)) return false;
    if (!c.expect(':')) return false;
  }
  const auto& args = m.region(region).args;
  bool same = args.size() == func.args.size();
  for (size_t i = 0; same && i < args.size(); ++i) same = m.value(args[i]).type == func.args[i];
  if (!same) return c.error(Code::kSyntaxError, at, "the body of '@" + func.name + "' takes other arguments than its type says");
  if (!regionBody(region)) return false;
  closeScope(mark);
  c.p = end;
  return !c.failed();
}

}  // namespace tpu::frontend
