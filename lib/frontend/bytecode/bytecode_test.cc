// Portable artifacts: the same module as from text, every version, and no damaged file that brings the reader
// down.
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "../testing.h"
#include "tpu/hlo/document.h"
#include "tpu/hlo/stablehlo.h"

namespace tpu::frontend {
namespace {

namespace fs = std::filesystem;

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

fs::path data(const char* name) { return fs::path(TPU_SOURCE_DIR) / "testdata/bytecode" / name; }

hlo::Module read(const fs::path& path) {
  Collect sink;
  auto module = readProgram(slurp(path), path.filename().string(), sink);
  if (module) return std::move(*module);
  ADD_FAILURE() << path << ": " << complaint(module.takeError());
  return hlo::Module();
}

// The document without what artifacts lose: locations, names that lie in locations, the kind of a channel,
// and precisions that are all DEFAULT.
std::string kept(hlo::Module module) {
  for (uint32_t i = 0; i < module.numOps(); ++i) {
    hlo::OpId op(i);
    module.op(op).loc = hlo::LocId();
    if (module.has(op, hlo::AttrKey::channel_type)) module.setInt(op, hlo::AttrKey::channel_type, 0);
    const hlo::Attr* precision = module.findAttr(op, hlo::AttrKey::precision_config);
    if (precision && llvm::all_of(precision->strs, [](const std::string& s) { return s == "DEFAULT"; }))
      module.removeAttr(op, hlo::AttrKey::precision_config);
  }
  for (uint32_t i = 0; i < module.numValues(); ++i) {
    module.value(hlo::ValueId(i)).loc = hlo::LocId();
    module.value(hlo::ValueId(i)).name = hlo::StringId();
  }
  for (hlo::Func& func : module.funcs) {
    func.loc = hlo::LocId();
    for (hlo::Port& port : func.arg_ports) port.name = hlo::StringId();
  }
  module.source_file.clear();
  std::string out;
  llvm::raw_string_ostream os(out);
  llvm::cantFail(hlo::writeDocument(module, os));
  return out;
}

TEST(Bytecode, GivesTheModuleOfTheText) {
  const std::pair<const char*, const char*> kPairs[] = {
      {"conv_nhwc_0.9.0.mlirbc", "conv_nhwc.mlir"},
      {"conv_nhwc_1.0.0.mlirbc", "conv_nhwc.mlir"},
      {"values_0.9.0.mlirbc", "values.mlir"},
      {"forms.mlirbc", "forms.mlir"},
      {"exported_mlp.mlirbc", "exported_mlp.mlir"},
      {"ppermute_ring.mlirbc", "ppermute_ring.mlir"},
      {"layernorm_softmax.mlirbc", "layernorm_softmax.mlir"},
      {"matmul_contract_sharded.mlirbc", "matmul_contract_sharded.mlir"}};
  for (auto [artifact, text] : kPairs) {
    SCOPED_TRACE(artifact);
    EXPECT_EQ(kept(read(data(artifact))), kept(read(data(text))));
  }
}

TEST(Bytecode, GivesTheModuleOfTheTextForTheWholeCorpus) {
  int found = 0;
  for (const char* shared : {"../shared/corpus", "../../shared/corpus"}) {
    fs::path root = fs::path(TPU_SOURCE_DIR) / shared;
    if (!fs::exists(root)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      fs::path text = entry.path();
      if (text.extension() != ".mlirbc") continue;
      SCOPED_TRACE(text.string());
      text.replace_extension(".mlir");
      EXPECT_EQ(kept(read(entry.path())), kept(read(text)));
      ++found;
    }
  }
  if (!found) std::printf("the shared folder corpus is absent: nothing is checked\n");
}

TEST(Bytecode, KeepsLocationsAndNames) {
  hlo::Module module = read(data("exported_mlp_1.5.0.mlirbc"));
  hlo::Module text = read(data("exported_mlp.mlir"));
  ASSERT_EQ(module.numOps(), text.numOps());
  EXPECT_EQ(module.string(module.func(module.entry).arg_ports[1].name).str(), "w2");
  int files = 0;
  for (uint32_t i = 0; i < module.numOps(); ++i) {
    std::string place = text.loc(text.op(hlo::OpId(i)).loc).str();
    if (!llvm::StringRef(place).contains(".py:")) continue;
    EXPECT_EQ(module.loc(module.op(hlo::OpId(i)).loc).str(), place);
    ++files;
  }
  EXPECT_GT(files, 3);
  Collect sink;
  auto serialised = readProgram(slurp(data("matmul_contract_sharded.mlirbc")), "dir/a.mlirbc", sink);
  ASSERT_TRUE(static_cast<bool>(serialised));
  EXPECT_EQ(serialised->loc(serialised->op(hlo::OpId(0)).loc).str(), "a.mlirbc:4:10");
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].code, Code::kNoLocations);
}

std::string why(const std::string& bytes) {
  Collect sink;
  auto module = readProgram(bytes, "a.mlirbc", sink);
  return module ? "accepted" : complaint(module.takeError());
}

TEST(Bytecode, RefusesOtherVersionsByName) {
  std::string bytes = slurp(data("exported_mlp.mlirbc"));
  size_t at = bytes.find("v1.17.0");
  std::string newer = bytes;
  newer.replace(at, 7, "v1.18.0");
  EXPECT_EQ(why(newer),
            "a.mlirbc: the program is of StableHLO 1.18.0; versions 0.9.0 to 1.17.0 are read (byte 5)");
  std::string other = bytes;
  other.replace(bytes.find("StableHLO_v1.17.0"), 17, "MLIR23.0.0git\0\0\0\0");
  EXPECT_TRUE(
      llvm::StringRef(why(other)).starts_with("a.mlirbc: this is MLIR bytecode written by 'MLIR23.0.0git'"))
      << why(other);
  std::string format = bytes;
  format[4] = 15;  // version 7
  EXPECT_EQ(why(format),
            "a.mlirbc: the file is of version 7 of MLIR bytecode; versions up to 6 are read (byte 4)");
}

const char* const kFiles[] = {"conv_nhwc_0.9.0.mlirbc", "forms.mlirbc", "exported_mlp.mlirbc",
                              "ppermute_ring.mlirbc", "values_0.9.0.mlirbc"};

TEST(Bytecode, TruncatedAnywhereIsRefusedWithItsPlace) {
  for (const char* name : kFiles) {
    std::string bytes = slurp(data(name));
    for (size_t size = 1; size < bytes.size(); ++size) {
      std::string text = why(bytes.substr(0, size));
      if (size < 4) continue;  // the kind of file cannot be told
      EXPECT_TRUE(llvm::StringRef(text).contains("(byte ")) << name << " cut at " << size << ": " << text;
    }
  }
}

TEST(Bytecode, FlippedBytesEndInAnErrorOrAValidModule) {
  std::mt19937 random(20261202);
  for (const char* name : kFiles) {
    std::string bytes = slurp(data(name));
    for (int round = 0; round < 6000; ++round) {
      std::string damaged = bytes;
      for (uint32_t flips = 1 + random() % 4; flips; --flips)
        damaged[5 + random() % (damaged.size() - 5)] = static_cast<char>(random());
      Collect sink;
      auto module = readProgram(damaged, "a.mlirbc", sink);
      if (module) {  // what is accepted can be written
        hlo::writeStableHlo(*module, llvm::nulls());
        kept(std::move(*module));
      } else {
        ASSERT_FALSE(takeDiagnostics(module.takeError()).empty());  // the verifier may have several
      }
    }
  }
}

// A writer of just enough of the format for files that no compiler writes.
struct Writer {
  static std::string number(uint64_t value) {
    std::string out(1, '\0');  // nine bytes, always
    for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i));
    return out;
  }
  static std::string section(char id, const std::string& content) {
    return std::string(1, id) + number(content.size()) + content;
  }
  // One attribute and one type, given by dialect "builtin"; operations of dialect "vhlo".
  static std::string file(const std::string& attr, const std::string& type, const std::string& ops) {
    std::string names[] = {"builtin", "vhlo", "module", "func_v1", "if_v1"}, sizes, texts;
    for (const std::string& name : names) {
      sizes = number(name.size() + 1) + sizes;
      texts += name + '\0';
    }
    std::string strings = number(5) + sizes + texts;
    std::string dialects = number(2) + number(0) + number(2) + number(3);
    dialects += number(0) + number(1) + number(2 << 1 | 1);
    dialects += number(1) + number(2) + number(3 << 1 | 1) + number(4 << 1 | 1);
    std::string offsets = number(1) + number(1) + number(0) + number(1) + number(attr.size() << 1 | 1);
    offsets += number(0) + number(1) + number(type.size() << 1 | 1);
    return std::string("ML\xefR\x0dStableHLO_v1.17.0") + '\0' + section(0, strings) + section(1, dialects) +
           section(2, attr + type) + section(3, offsets) + section(4, ops);
  }
};

TEST(Bytecode, DeepNestingIsRefused) {
  auto n = [](uint64_t value) { return Writer::number(value); };
  std::string unknown_loc = n(15), f32 = n(5);
  std::string ops = n(1 << 1) + n(0) + '\x10' + n(0) + n(1 << 1);
  for (int i = 0; i < 100'000; ++i) ops += n(1) + n(0) + n(1 << 1) + n(2) + '\x10' + n(0) + n(1 << 1);
  EXPECT_TRUE(llvm::StringRef(why(Writer::file(unknown_loc, f32, ops))).contains("regions nest too deeply"));

  // A location and a tuple inside themselves.
  std::string module = n(1 << 1) + n(0) + '\x10' + n(0) + n(1 << 1) + n(1) + n(1);
  std::string body = n(1 << 1) + n(2) + '\x02' + n(0) + n(1) + n(0);
  std::string named = n(10) + n(0) + n(0), tuple = n(15) + n(1) + n(0);
  EXPECT_EQ(llvm::StringRef(why(Writer::file(named, tuple, module + body))).split(" (").first,
            "a.mlirbc: unknown operation 'vhlo.if_v1' in a module");
}

}  // namespace
}  // namespace tpu::frontend
