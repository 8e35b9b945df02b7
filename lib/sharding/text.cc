// Printing and reading shardings and meshes, and the checks that any sharding must pass before it is used.
#include "tpu/sharding/text.h"

#include <algorithm>

#include "tpu/sharding/device_list.h"
#include "llvm/ADT/StringExtras.h"
#include "tpu/hlo/sharding_mistakes.h"
#include "tpu/support/diagnostics.h"

namespace tpu::sharding {

using hlo::DimSharding;
using hlo::Sharding;

std::string print(const Mesh& mesh, const AxisRef& a) {
  std::string out = "\"" + mesh.axes[a.axis].name + "\"";
  if (!isFull(mesh, a)) out += ":(" + std::to_string(a.pre) + ")" + std::to_string(a.size);
  return out;
}

namespace {

void printList(const Mesh& mesh, AxesRef axes, bool open, std::string& out) {
  out += '{';
  bool first = true;
  for (const AxisRef& a : axes) {
    if (!first) out += ", ";
    first = false;
    out += print(mesh, a);
  }
  if (open) out += first ? "?" : ", ?";
  out += '}';
}

}  // namespace

std::string print(const Mesh& mesh, AxesRef axes) {
  std::string out;
  printList(mesh, axes, false, out);
  return out;
}

std::string print(const Mesh& mesh, const Sharding& s) {
  std::string out = "[";
  for (size_t d = 0; d < s.dims.size(); ++d) {
    if (d) out += ", ";
    printList(mesh, s.dims[d].axes, s.dims[d].open, out);
    if (s.dims[d].priority >= 0) out += "p" + std::to_string(s.dims[d].priority);
  }
  out += ']';
  if (!s.replicated.empty()) out += ", replicated=" + print(mesh, AxesRef(s.replicated));
  if (!s.unreduced.empty()) out += ", unreduced=" + print(mesh, AxesRef(s.unreduced));
  return out;
}

std::string print(const hlo::Module& m, hlo::ShardingId id) {
  if (!id) return "replicated";
  const Sharding& s = m.sharding(id);
  return print(m.meshes[s.mesh.v], s);
}

std::string printMesh(const Mesh& mesh) {
  std::string out;
  for (const hlo::MeshAxis& a : mesh.axes) {
    if (!out.empty()) out += ',';
    out += a.name + "=" + std::to_string(a.size);
  }
  return out;
}

namespace {

class Reader {
 public:
  Reader(const Mesh& mesh, llvm::StringRef text, llvm::StringRef where)
      : mesh_(mesh), text_(text), where_(where) {}

  bool eat(llvm::StringRef token) {
    text_ = text_.ltrim();
    return text_.consume_front(token);
  }
  bool atEnd() { return text_.trim().empty(); }
  void skip() { text_ = ""; }
  llvm::Error bad(const llvm::Twine& expected) {
    const std::string rest = text_.trim().str();
    return fail(Code::kShardingText, where_,
                "malformed sharding: expected " + expected + (rest.empty() ? " at its end" : " before '" + rest + "'"));
  }

  llvm::Error axes(Axes& out, bool* open) {
    if (!eat("{")) return bad("'{'");
    while (!eat("}")) {
      if (!out.empty() || (open && *open)) {
        if (!eat(",")) return bad("',' or '}'");
      }
      if (open && eat("?")) {
        *open = true;
        continue;
      }
      AxisRef ref;
      if (llvm::Error e = axis(ref)) return e;
      append(out, ref);
    }
    return llvm::Error::success();
  }

  llvm::Error axis(AxisRef& ref) {
    text_ = text_.ltrim();
    const llvm::StringRef quote = text_.starts_with("'") ? "'" : "\"";  // XLA's and Shardy's
    bool quoted = text_.consume_front(quote);
    llvm::StringRef name =
        text_.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '-'; });
    text_ = text_.drop_front(name.size());
    if (name.empty() || (quoted && !text_.consume_front(quote))) return bad("an axis name");
    int i = mesh_.findAxis(name);
    if (i < 0) {
      return fail(Code::kUnknownAxis, where_, hlo::unknownAxisText(mesh_, name));
    }
    ref = fullAxis(mesh_, i);
    if (!eat(":")) return llvm::Error::success();
    if (!eat("(") || text_.consumeInteger(10, ref.pre) || !eat(")") || text_.consumeInteger(10, ref.size)) {
      return bad("a sub-axis ':(pre)size'");
    }
    return llvm::Error::success();
  }

  llvm::Error dim(DimSharding& out) {
    Axes list;
    if (llvm::Error e = axes(list, &out.open)) return e;
    out.axes = list;
    if (text_.starts_with("p")) {
      text_ = text_.drop_front();
      if (text_.consumeInteger(10, out.priority)) return bad("a priority");
    }
    return llvm::Error::success();
  }

  /// What follows '['.
  llvm::Error dims(std::vector<DimSharding>& out) {
    while (!eat("]")) {
      if (!out.empty() && !eat(",")) return bad("','");
      out.emplace_back();
      if (llvm::Error e = dim(out.back())) return e;
    }
    return llvm::Error::success();
  }

 private:
  const Mesh& mesh_;
  llvm::StringRef text_, where_;
};

}  // namespace

llvm::Expected<Sharding> parse(const hlo::Module& module, hlo::MeshId mesh, llvm::StringRef text,
                               int64_t rank, llvm::StringRef where) {
  const Mesh& m = module.meshes[mesh.v];
  Reader in(m, text, where);
  Sharding s;
  s.mesh = mesh;
  bool bracket = in.eat("[");
  if (bracket) {
    if (llvm::Error e = in.dims(s.dims)) return e;
  }
  while (!bracket && !in.atEnd()) {
    if (!s.dims.empty() && !in.eat(",")) return in.bad("','");
    s.dims.emplace_back();
    if (llvm::Error e = in.dim(s.dims.back())) return e;
  }
  while (bracket && in.eat(",")) {
    Axes list;
    bool replicated = in.eat("replicated");
    if (!replicated && !in.eat("unreduced")) return in.bad("'replicated' or 'unreduced'");
    if (!in.eat("=")) return in.bad("'='");
    if (llvm::Error e = in.axes(list, nullptr)) return e;
    (replicated ? s.replicated : s.unreduced) = list;
  }
  if (!in.atEnd()) return in.bad("the end");
  if (llvm::Error e = check(m, s, rank, where)) return e;
  return s;
}

llvm::Expected<Mesh> parseMesh(llvm::StringRef text) {
  Mesh mesh;
  mesh.name = "mesh";
  llvm::SmallVector<llvm::StringRef, 4> parts;
  text.split(parts, ',', -1, false);
  for (llvm::StringRef part : parts) {
    auto [name, size] = part.split('=');
    int64_t n = 0;
    if (name.trim().empty() || size.trim().getAsInteger(10, n) || n < 1) {
      return fail(Code::kBadMesh, "", "malformed mesh '" + text + "': expected name=size, as in x=4,y=2");
    }
    if (mesh.findAxis(name.trim()) >= 0)
      return fail(Code::kBadMesh, "", "axis '" + name.trim() + "' stands twice in the mesh");
    mesh.axes.push_back({name.trim().str(), n});
  }
  return mesh;
}

llvm::Expected<Mesh> parseNamedMesh(llvm::StringRef& text, llvm::StringRef where) {
  auto bad = [&](const llvm::Twine& why) { return fail(Code::kBadMesh, where, "malformed mesh '" + text + "': " + why); };
  Mesh mesh;
  mesh.name = "mesh";
  int64_t devices = 1;
  llvm::StringRef rest = text.ltrim();
  if (!rest.consume_front("mesh[")) return bad("expected mesh['name'=size]");
  while (!rest.consume_front("]")) {
    if (!mesh.axes.empty() && !rest.consume_front(",")) return bad("expected ',' or ']'");
    const llvm::StringRef quoted = rest.take_until([](char c) { return c == '=' || c == ']'; }), name = quoted.trim(" '");
    int64_t size;
    rest = rest.drop_front(quoted.size());
    if (name.empty() || !rest.consume_front("=") || rest.consumeInteger(10, size) || size < 1) return bad("expected 'name'=size");
    if (mesh.findAxis(name) >= 0) return bad("axis '" + name + "' stands twice in it");
    if (__builtin_mul_overflow(devices, size, &devices) || devices > int64_t{1} << 24) return bad("more than 2^24 devices");
    mesh.axes.push_back({name.str(), size});
  }
  if (llvm::StringRef list = rest.ltrim(" ,"); list.consume_front("device_ids=(")) {
    DeviceList ids;
    const std::string why = list.starts_with("[") ? readIota(list, devices, ids) : readIds(list, devices, ids);
    if (!why.empty()) return bad(why);
    if (!list.consume_front(")")) return bad("expected ')'");
    for (int64_t id : devicesOf(ids)) mesh.device_ids.push_back(id);
    if (std::is_sorted(mesh.device_ids.begin(), mesh.device_ids.end())) mesh.device_ids.clear();
    rest = list;
  }
  text = rest;
  return mesh;
}

llvm::Expected<Axes> parseAxes(const Mesh& mesh, llvm::StringRef text, llvm::StringRef where) {
  Sharding s;
  Axes list;
  Reader in(mesh, text, where);
  if (llvm::Error e = in.axes(list, nullptr)) return e;
  if (!in.atEnd()) return in.bad("the end");
  s.replicated = list;
  if (llvm::Error e = check(mesh, s, 0, where)) return e;
  return list;
}

llvm::Expected<NamedSharding> parseNamedSharding(llvm::StringRef text, llvm::StringRef where) {
  auto mesh = parseNamedMesh(text, where);
  if (!mesh) return mesh.takeError();
  NamedSharding out{std::move(*mesh), {}, {}};
  Axes replicated, unreduced;
  Reader in(out.mesh, text, where);
  while (in.eat(",")) {
    Axes* list = in.eat("replicated") ? &replicated : in.eat("unreduced") ? &unreduced : in.eat("manual") ? &out.manual : nullptr;
    if (list && in.eat("=")) {
      if (llvm::Error e = in.axes(*list, nullptr)) return e;
    } else if (list) {
      *list = unused(out.mesh, {});
    } else if (in.eat("metadata=")) {
      in.skip();
    } else if (!in.eat("[")) {
      return in.bad("'[', 'replicated', 'unreduced' or 'manual'");
    } else if (llvm::Error e = in.dims(out.sharding.dims)) {
      return e;
    }
  }
  if (!in.atEnd()) return in.bad("the end");
  Sharding all = out.sharding;  // no part of an axis twice
  all.replicated = concat(replicated, out.manual);
  all.unreduced = unreduced;
  if (llvm::Error e = check(out.mesh, all, static_cast<int64_t>(all.dims.size()), where)) return e;
  out.sharding.unreduced = unreduced;
  return out;
}

llvm::Error check(const Mesh& mesh, const Sharding& s, int64_t rank, llvm::StringRef where) {
  if (static_cast<int64_t>(s.dims.size()) != rank) {
    return fail(
        Code::kShardingText, where,
        "sharding of rank " + llvm::Twine(s.dims.size()) + " on a tensor of rank " + llvm::Twine(rank));
  }
  Axes seen;
  auto take = [&](AxesRef list) -> llvm::Error {
    for (const AxisRef& a : list) {
      if (a.axis >= mesh.axes.size())
        return fail(Code::kUnknownAxis, where,
                    "axis number " + llvm::Twine(a.axis) + " of a mesh of " + llvm::Twine(mesh.axes.size()));
      if (a.pre < 1 || a.size < 1 || mesh.axes[a.axis].size % (a.pre * a.size) != 0) {
        return fail(Code::kShardingText, where, hlo::badSubAxisText(mesh, a));
      }
      if (overlaps(a, seen))
        return fail(Code::kAxisTwice, where, hlo::axisTwiceText(mesh, a, seen));
      seen.push_back(a);
    }
    return llvm::Error::success();
  };
  for (const DimSharding& d : s.dims) {
    if (llvm::Error e = take(d.axes)) return e;
  }
  if (llvm::Error e = take(s.replicated)) return e;
  return take(s.unreduced);
}

}  // namespace tpu::sharding
