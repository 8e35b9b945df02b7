// Inputs from files, literals and seeds.
#include <optional>

#include "arrays.h"
#include "llvm/ADT/StringExtras.h"
#include "tpu/eval/tensor_text.h"
#include "tpu/serial/array_file.h"
#include "tpu/support/host_memory.h"

namespace tpu::run {
namespace {

llvm::Error wrong(const llvm::Twine& text) { return fail(Code::kEvalWrongInputs, "", text); }

bool sameDims(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> program) {
  if (a.size() != program.size()) return false;
  for (size_t d = 0; d < a.size(); ++d)
    if (a[d] != program[d] && program[d] >= 0) return false;
  return true;
}

llvm::Expected<HostTensor> checked(HostTensor tensor, const Port& port, const std::string& what) {
  if (tensor.element == port.element && sameDims(tensor.dims, port.dims)) return tensor;
  return wrong(what + " is given as " + typeText(tensor.element, tensor.dims) + ", the program has " +
               typeText(port.element, port.dims));
}

llvm::Expected<HostTensor> fromFile(FileArray array, const Port& port, bool bits, const std::string& what) {
  if (!sameDims(array.dims, port.dims))
    return wrong(what + ": the file holds " + describe(array) + ", the program has " +
                 typeText(port.element, port.dims));
  return toTensor(std::move(array), port.element, bits, what);
}

// The array of a file that `key`, or the port's name, picks.
llvm::Expected<FileArray> pick(std::vector<FileArray> arrays, llvm::StringRef key, const Port& port,
                               const std::string& what) {
  if (arrays.size() == 1 && key.empty()) return std::move(arrays[0]);
  const std::string name = key.empty() ? plainName(port.name) : plainName(key);
  for (FileArray& a : arrays)
    if (plainName(a.name) == name) return std::move(a);
  return wrong(what + ": the file has no array '" + name + "'");
}

std::optional<uint64_t> seedOf(llvm::StringRef spec) {
  uint64_t seed;
  if (!spec.consume_front("seed:") || spec.getAsInteger(10, seed)) return std::nullopt;
  return seed;
}

llvm::Error readRaw(Tool& tool, llvm::StringRef file, HostTensor& into) {
  auto in = readInput(file);
  if (!in) return in.takeError();
  tool.dependsOn(file);
  if (in->bytes.size() != into.bytes.size())
    return fail(Code::kBadArray, in->name,
                typeText(into.element, into.dims) + " takes " + llvm::Twine(into.bytes.size()) +
                    " bytes, the file has " + llvm::Twine(in->bytes.size()));
  std::copy(in->bytes.begin(), in->bytes.end(), into.bytes.begin());
  return llvm::Error::success();
}

// "f.npz:key": the key counts only behind the name of a file that holds several arrays.
std::pair<llvm::StringRef, llvm::StringRef> splitKey(llvm::StringRef spec) {
  for (llvm::StringRef extension : {".npz:", ".safetensors:"}) {
    const size_t at = spec.find(extension);
    if (at != llvm::StringRef::npos)
      return {spec.substr(0, at + extension.size() - 1), spec.substr(at + extension.size())};
  }
  return {spec, ""};
}

llvm::Expected<std::pair<size_t, llvm::StringRef>> splitAssignment(Tool& tool, llvm::StringRef flag,
                                                                   llvm::StringRef text,
                                                                   llvm::ArrayRef<Port> ports,
                                                                   llvm::StringRef role) {
  const auto [key, spec] = text.split('=');
  if (key.empty() || spec.empty()) return tool.badFlag(flag, "expected I=@FILE, found '" + text + "'");
  auto index = findPort(ports, key, role);
  if (!index) return index.takeError();
  return std::make_pair(*index, spec);
}

// The first few, joined.
std::string nameList(llvm::ArrayRef<std::string> names) {
  constexpr size_t kMost = 8;
  return llvm::join(names.take_front(kMost), ", ") + (names.size() > kMost ? ", ..." : "");
}

// Of ports; a position where there is no name.
std::vector<std::string> plainNames(llvm::ArrayRef<Port> ports) {
  std::vector<std::string> names;
  for (size_t i = 0; i < ports.size(); ++i)
    names.push_back(ports[i].name.empty() ? std::to_string(i) : plainName(ports[i].name));
  return names;
}

llvm::Expected<HostTensor> draw(const Port& port, uint64_t seed, size_t index, llvm::StringRef role) {
  int64_t bytes = hostBytes(port.element);
  for (int64_t dim : port.dims) {
    if (dim == hlo::kDynamicDim)
      return wrong(portText(role, index, port) + " of type " + typeText(port.element, port.dims) +
                   " cannot be drawn: its shape is not the program's; give an array with --input");
    bytes = mulBytes(bytes, dim);
  }
  if (auto e = requireHostMemory(bytes, "", portText(role, index, port))) return e;
  return eval::drawTensor(port.element, port.dims, seed, index);
}

// One --inputs: fills what is still missing.
llvm::Error fillRest(Tool& tool, llvm::StringRef spec, const Signature& s,
                     std::vector<std::optional<HostTensor>>& given) {
  if (const auto seed = seedOf(spec)) {
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i]) continue;
      auto drawn = draw(s.args[i], *seed, i, "input");
      if (!drawn) return drawn.takeError();
      given[i] = std::move(*drawn);
    }
    return llvm::Error::success();
  }
  if (!spec.consume_front("@"))
    return tool.badFlag("inputs", "expected seed:N or @FILE, found '" + spec + "'");
  auto arrays = readArrayFile(spec);
  if (!arrays) return arrays.takeError();
  tool.dependsOn(spec);
  bool complete = true, fits = false;
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i]) continue;
    complete = false;
    for (FileArray& a : *arrays) {
      if (!sameName(a.name, s.args[i].name) && a.name != std::to_string(i)) continue;
      auto tensor = fromFile(std::move(a), s.args[i], false, portText("input", i, s.args[i]));
      if (!tensor) return tensor.takeError();
      given[i] = std::move(*tensor);
      fits = true;
      break;
    }
  }
  if (complete || fits) return llvm::Error::success();
  std::vector<std::string> names;
  for (const FileArray& a : *arrays) names.push_back(a.name);
  return fail(Code::kEvalWrongInputs, spec.str(),
              "no array of the file has the name or the position of an input; it has " + nameList(names) +
                  ", the program takes " + nameList(plainNames(s.args)));
}

}  // namespace

std::string portText(llvm::StringRef role, size_t index, const Port& port) {
  std::string text = role.str() + " " + std::to_string(index);
  return port.name.empty() ? text : text + " '" + port.name + "'";
}

llvm::Expected<size_t> findPort(llvm::ArrayRef<Port> ports, llvm::StringRef key, llvm::StringRef role) {
  std::vector<llvm::StringRef> names;
  for (const Port& p : ports) names.push_back(p.name);
  if (const auto index = tpu::findPort(names, key)) return *index;
  if (key.find_first_not_of("0123456789") == llvm::StringRef::npos)
    return wrong("there is no " + role + " " + key + ": the program has " + llvm::Twine(ports.size()) +
                 ", counted from 0");
  return wrong("there is no " + role + " '" + key + "'; the program has " + nameList(plainNames(ports)));
}

llvm::Expected<HostTensor> loadArray(Tool& tool, llvm::StringRef spec, const Port& port, size_t index,
                                     llvm::StringRef role) {
  const std::string what = portText(role, index, port);
  if (const auto seed = seedOf(spec)) return draw(port, *seed, index, role);
  llvm::StringRef file = spec;
  const bool bits = file.consume_front("bits@");
  if (bits || file.consume_front("@")) {
    const auto [path, key] = splitKey(file);
    auto arrays = readArrayFile(path);
    if (!arrays) return arrays.takeError();
    tool.dependsOn(path);
    auto array = pick(std::move(*arrays), key, port, what);
    if (!array) return array.takeError();
    return fromFile(std::move(*array), port, bits, what);
  }
  auto literal = eval::parseTensor(
      spec, [&](llvm::StringRef raw, HostTensor& into) { return readRaw(tool, raw, into); });
  if (!literal) return literal;
  return checked(std::move(*literal), port, what);
}

llvm::Expected<std::vector<HostTensor>> gatherInputs(Tool& tool, const Signature& s) {
  std::vector<std::optional<HostTensor>> given(s.args.size());
  for (const std::string& text : tool.all("input")) {
    auto assignment = splitAssignment(tool, "input", text, s.args, "input");
    if (!assignment) return assignment.takeError();
    const auto& [index, spec] = *assignment;
    if (given[index]) return wrong(portText("input", index, s.args[index]) + " is given twice");
    auto tensor = loadArray(tool, spec, s.args[index], index, "input");
    if (!tensor) return tensor.takeError();
    given[index] = std::move(*tensor);
  }
  for (const std::string& text : tool.all("inputs"))
    if (llvm::Error e = fillRest(tool, text, s, given)) return e;
  std::vector<HostTensor> out;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i])
      return wrong(portText("input", i, s.args[i]) + " of type " +
                   typeText(s.args[i].element, s.args[i].dims) + " is not given; the program takes " +
                   llvm::Twine(s.args.size()) + " inputs (--input=" + llvm::Twine(i) +
                   "=@FILE, or --inputs=seed:7 to draw them)");
    out.push_back(std::move(*given[i]));
  }
  return out;
}

llvm::Expected<std::vector<Expected>> gatherExpected(Tool& tool, const Signature& s) {
  std::vector<Expected> out;
  for (const std::string& text : tool.all("expect")) {
    auto assignment = splitAssignment(tool, "expect", text, s.results, "result");
    if (!assignment) return assignment.takeError();
    auto tensor =
        loadArray(tool, assignment->second, s.results[assignment->first], assignment->first, "result");
    if (!tensor) return tensor.takeError();
    out.push_back({assignment->first, std::move(*tensor)});
  }
  return out;
}

}  // namespace tpu::run
