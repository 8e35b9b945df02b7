// The arrays of --infeed and --receive become what the evaluator reads, what it gave becomes files. Which operation reads an
// array is known when it runs: here an array is read as the types of the first operation that it fits.
#include "transfers.h"

#include "arrays.h"
#include "tpu/hlo/analysis.h"
#include "tpu/serial/array_file.h"
#include "tpu/support/units.h"

namespace tpu::run {
namespace {

using Values = eval::HostTransfers::Values;

// The arrays of one read, checked against what the operation gives besides its token.
llvm::Expected<Values> readValues(Tool& tool, llvm::StringRef flag, llvm::StringRef text, const hlo::Module& module,
                                  hlo::OpId id) {
  llvm::SmallVector<llvm::StringRef, 4> specs;
  text.split(specs, ';', -1, false);
  llvm::SmallVector<Port, 4> ports;
  for (hlo::ValueId v : module.op(id).results)
    if (const hlo::Type& type = module.typeOf(v); type.kind == hlo::TypeKind::kTensor)
      ports.push_back({"", type.element, type.dims});
  if (specs.size() != ports.size())
    return tool.badFlag(flag, "'" + text + "' is " + plural(specs.size(), "array") + ", " +
                                  module.loc(module.op(id).loc) + " reads " + llvm::Twine(ports.size()));
  Values out;
  for (size_t i = 0; i < ports.size(); ++i) {
    auto array = loadArray(tool, specs[i].trim(), ports[i], i, flag);
    if (!array) return array.takeError();
    out.push_back(std::move(*array));
  }
  return out;
}

llvm::Expected<Values> readForAny(Tool& tool, llvm::StringRef flag, llvm::StringRef text, const hlo::Module& module,
                                  llvm::ArrayRef<hlo::OpId> readers) {
  auto first = readValues(tool, flag, text, module, readers[0]);
  for (hlo::OpId id : readers.drop_front()) {
    if (first) break;
    auto other = readValues(tool, flag, text, module, id);
    if (!other) {
      llvm::consumeError(other.takeError());
      continue;
    }
    llvm::consumeError(first.takeError());
    return other;
  }
  return first;
}

// The file behind "@f.npz".
llvm::Expected<llvm::StringRef> fileOf(Tool& tool, llvm::StringRef flag) {
  llvm::StringRef path = tool.get(flag);
  if (path.consume_front("@") && (path.ends_with(".npz") || path.ends_with(".safetensors"))) return path;
  return tool.badFlag(flag, "expected @FILE of type .npz or .safetensors, found '" + tool.get(flag) + "'");
}

llvm::Error writeAll(llvm::StringRef path, llvm::ArrayRef<NamedTensor> tensors) {
  return writeOutput(path, path.ends_with(".npz") ? writeNpz(tensors) : writeSafetensors(tensors), OutputKind::kDocument);
}

void name(std::vector<NamedTensor>& out, const std::string& prefix, const std::vector<Values>& queue) {
  for (size_t k = 0; k < queue.size(); ++k)
    for (size_t i = 0; i < queue[k].size(); ++i)
      out.push_back({prefix + std::to_string(k) + "." + std::to_string(i), &queue[k][i]});
}

}  // namespace

llvm::Expected<eval::HostTransfers> gatherTransfers(Tool& tool, const hlo::Module& module) {
  std::vector<hlo::OpId> infeeds;
  std::map<int64_t, std::vector<hlo::OpId>> receives;
  hlo::walk(module, [&](hlo::OpId id) {
    if (module.op(id).opcode == hlo::Opcode::infeed) infeeds.push_back(id);
    if (module.op(id).opcode == hlo::Opcode::recv && module.getBool(id, hlo::AttrKey::is_host_transfer))
      receives[module.getInt(id, hlo::AttrKey::channel_id)].push_back(id);
  });
  eval::HostTransfers out;
  for (const std::string& text : tool.all("infeed")) {
    if (infeeds.empty()) return tool.badFlag("infeed", "the program has no infeed");
    auto values = readForAny(tool, "infeed", text, module, infeeds);
    if (!values) return values.takeError();
    out.infeed.push_back(std::move(*values));
  }
  for (const std::string& text : tool.all("receive")) {
    const auto [channel, specs] = llvm::StringRef(text).split('=');
    int64_t number;
    if (channel.getAsInteger(10, number)) return tool.badFlag("receive", "expected CHANNEL=@FILE, found '" + text + "'");
    const auto op = receives.find(number);
    if (op == receives.end())
      return tool.badFlag("receive", "the program receives nothing from the host over channel " + channel);
    auto values = readForAny(tool, "receive", specs, module, op->second);
    if (!values) return values.takeError();
    out.receive[number].push_back(std::move(*values));
  }
  for (llvm::StringRef flag : {"outfeed", "sent"})
    if (tool.has(flag))
      if (auto path = fileOf(tool, flag); !path) return path.takeError();
  return out;
}

llvm::Error deliverTransfers(Tool& tool, const eval::HostTransfers& transfers) {
  for (llvm::StringRef flag : {"outfeed", "sent"}) {
    if (!tool.has(flag)) continue;
    std::vector<NamedTensor> tensors;
    if (flag == "outfeed") name(tensors, "", transfers.outfed);
    else
      for (const auto& [channel, queue] : transfers.sent) name(tensors, std::to_string(channel) + ".", queue);
    auto path = fileOf(tool, flag);
    if (!path) return path.takeError();
    if (llvm::Error e = writeAll(*path, tensors)) return e;
  }
  return llvm::Error::success();
}

}  // namespace tpu::run
