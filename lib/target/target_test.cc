// Built-in chips, user's chip files and their errors, topologies, wrap rules, routes.
#include <gtest/gtest.h>

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "tpu/support/diagnostics.h"
#include "tpu/target/chip.h"

namespace tpu::target {
namespace {

Chip chip(llvm::StringRef name) { return llvm::cantFail(loadChip(name)); }
Target target(llvm::StringRef text) { return llvm::cantFail(parseTarget(text)); }

template <class T>
Diagnostic error(llvm::Expected<T> value) {
  if (value) {
    ADD_FAILURE() << "no error";
    return {};
  }
  return takeDiagnostics(value.takeError())[0];
}

TEST(Chip, BuiltinTextIsCanonical) {
  EXPECT_EQ(llvm::join(builtinChips(), " "), "v2 v3 v4 v5e v5p v6e v7x");
  for (const std::string& name : builtinChips()) {
    auto file =
        llvm::MemoryBuffer::getFile(std::string(TPU_SOURCE_DIR "/lib/target/chips/") + name + ".json");
    ASSERT_TRUE(static_cast<bool>(file));
    EXPECT_EQ((*file)->getBuffer(), chip(name).json);
    EXPECT_EQ(llvm::cantFail(parseChip(chip(name).json, name)).json, chip(name).json);
    EXPECT_NE(listTargets().find("\n" + name), std::string::npos);
  }
}

TEST(Chip, PeakFollowsFromUnits) {
  const std::pair<const char*, double> peaks[] = {{"v2", 46e12},   {"v3", 123e12},  {"v4", 275e12},
                                                  {"v5e", 197e12}, {"v5p", 459e12}, {"v6e", 918e12},
                                                  {"v7x", 2307e12}};
  for (const auto& [name, peak] : peaks) {
    const Chip c = chip(name);
    const double panels = c.mxu_side > 128 ? 2 : 1;
    const double rows = 16 / (c.timing("matmul_bf16").interval * panels);
    EXPECT_NEAR(2.0 * c.tensor_cores * c.mxus * c.mxu_side * c.mxu_side * rows * c.clock_hz / peak, 1, 0.01)
        << name;
  }
}

// A FIFO must hold what is under way when its unit is kept busy.
TEST(Chip, DepthsCoverLatencies) {
  for (const std::string& name : builtinChips()) {
    const Chip c = chip(name);
    auto covers = [&](const char* cls, double entries, int depth) {
      const Timing t = c.timing(cls);
      EXPECT_GE(depth, entries * t.latency / t.interval) << name << " " << cls;
    };
    covers("xlu_reduce", 1, c.xlu_depth);
    covers("eup_push", 1, c.eup_depth);
    covers("v2s_push", 1, c.v2s_depth);
    if (c.mxu_addressed) continue;
    for (const std::string& type : c.mxu_types) {
      const int rows = type == "f32" ? 8 : type == "bf16" ? 16 : 32;
      covers(("matmul_" + type).c_str(), rows / 8, c.mrf_depth);
    }
  }
}

TEST(Chip, UserFileOverABase) {
  const char* text =
      "{\"format\":\"tpu-chip\",\"version\":1,\"name\":\"mine\",\"base\":\"v5e\",\n\"mxus\":2,\n\"timings\":{"
      "\"pop\":{\"latency\":7}}}";
  const Chip c = llvm::cantFail(parseChip(text, "mine.json"));
  EXPECT_EQ(c.name, "mine");
  EXPECT_EQ(c.mxus, 2);
  EXPECT_EQ(c.timing("pop").latency, 7);
  EXPECT_EQ(c.timing("pop").interval, chip("v5e").timing("pop").interval);
  EXPECT_EQ(c.vmem_bytes, chip("v5e").vmem_bytes);
  EXPECT_EQ(llvm::cantFail(parseChip(c.json, "again")).json, c.json);
  EXPECT_NE(c.json.find("\"mxus\":{\"value\":2,\"mark\":\"assumed\"}"), std::string::npos);
}

TEST(Chip, NonsenseIsRefusedAtItsLine) {
  auto complaint = [](llvm::StringRef fields) {
    const Diagnostic d = error(parseChip(
        ("{\"format\":\"tpu-chip\",\"version\":1,\"name\":\"m\",\"base\":\"v5e\",\n" + fields + "}").str(),
        "m.json"));
    return d.loc + ": " + d.text;
  };
  EXPECT_EQ(complaint("\"mxus\":0"), "m.json:2:8: 'mxus' is 0; it must lie between 1 and 8");
  EXPECT_EQ(complaint("\"mxu\":4"), "m.json:2:7: unknown field 'mxu'");
  EXPECT_EQ(complaint("\"mxus\":\"4\""), "m.json:2:8: 'mxus' must be an integer");
  EXPECT_EQ(complaint("\"mxu_side\":96"), "m.json:2:12: 'mxu_side' must be 64, 128 or 256");
  EXPECT_EQ(complaint("\"mrf_depth\":3"), "m.json:2:13: 'mrf_depth' must hold the 4 entries of one vmatmul");
  EXPECT_EQ(complaint("\"timings\":{\"popp\":{}}"), "m.json:2:19: unknown latency class 'popp'");
  EXPECT_EQ(
      complaint("\"mxu_types\":[\"f16\"]"),
      "m.json:2:13: 'mxu_types' has the unknown type 'f16'; known are f32, bf16, s8, u8, f8e4m3fn, f8e5m2");
  EXPECT_EQ(complaint("\"clock_hz\":{\"value\":9000000,\"mark\":\"published\"}"),
            "m.json:2:12: 'clock_hz' is published but names no \"source\"");
  EXPECT_EQ(complaint("\"clock_hz\":{\"value\":9000000,\"mark\":\"assumed\",\"bracket\":[1,2]}"),
            "m.json:2:12: 'clock_hz' lies outside its \"bracket\"");
  EXPECT_EQ(complaint("\"hbm_sustained_bytes_per_s\":900000000000"),
            "m.json:2:29: 'hbm_sustained_bytes_per_s' exceeds the nominal rate");
  EXPECT_EQ(complaint("\"pod\":[4]"), "m.json:2:7: 'pod' must have a length per dimension");
  EXPECT_EQ(complaint("\"wrap_rule\":\"ring\""),
            "m.json:2:13: 'wrap_rule' must be length16, cubes4, full or none");
  EXPECT_EQ(complaint("\"clock_hz\":1.5"), "m.json:2:12: 'clock_hz' must not be a number");
  EXPECT_EQ(complaint("\"mxus\":4,\"mxus\":4"), "m.json:2:17: 'mxus' stands twice");
}

TEST(Chip, BrokenFiles) {
  EXPECT_EQ(error(parseChip("", "f")).code, Code::kBadJson);
  EXPECT_EQ(error(parseChip("{\"format\":\"tpu-chip\"", "f")).code, Code::kBadJson);
  EXPECT_EQ(error(parseChip("{}", "f")).code, Code::kBadChipFile);
  EXPECT_EQ(error(parseChip("{\"format\":\"tpu-chip\",\"version\":2,\"name\":\"m\"}", "f")).code,
            Code::kNewerVersion);
  EXPECT_EQ(error(parseChip("{\"format\":\"tpu-chip\",\"version\":1,\"name\":\"m\"}", "f")).text,
            "'tensor_cores' is missing");
  EXPECT_EQ(error(loadChip("v9")).exit, ExitStatus::kUsage);
  EXPECT_EQ(error(loadChip("v9")).text,
            "unknown chip 'v9'; known are v2, v3, v4, v5e, v5p, v6e, v7x, or a path to a chip file");
  EXPECT_EQ(error(loadChip("./no/such.json")).exit, ExitStatus::kIo);
  const std::string whole = chip("v5e").json;
  for (size_t n = 0; n < whole.size() - 1; n += 7)
    EXPECT_FALSE(static_cast<bool>(error(parseChip(whole.substr(0, n), "f")).text.empty()));
}

TEST(Chip, TinyMachine) {
  const Chip c = chip(TPU_SOURCE_DIR "/testdata/chips/tiny.json");
  EXPECT_EQ(c.name, "tiny");
  EXPECT_EQ(c.mxus, 4);
  EXPECT_EQ(c.mxu_side, 64);
  EXPECT_EQ(c.vmem_bytes, 256 << 10);
  EXPECT_EQ(c.vector_regs, 8);
  for (int depth : {c.mrf_depth, c.trf_depth, c.xlu_depth, c.eup_depth, c.v2s_depth}) EXPECT_EQ(depth, 4);
}

TEST(Target, Spellings) {
  EXPECT_EQ(target("v5e").text, "v5e:1x1");
  EXPECT_EQ(target("v4:2x2").text, "v4:2x2x1");
  EXPECT_EQ(target("2xv5e:16x16").text, "2xv5e:16x16");
  EXPECT_EQ(target("2xv5e:16x16").numDevices(), 512);
  EXPECT_EQ(target("v4:2x2x2").numDevices(), 8);
  EXPECT_EQ(target("v3:2x2").numDevices(), 8);
  EXPECT_EQ(target("v7x:2x2x1").numDevices(), 8);
  EXPECT_EQ(target(TPU_SOURCE_DIR "/testdata/chips/tiny.json:2x2").text, "tiny:2x2");
  EXPECT_EQ(target("v5e:4x3").notes.size(), 1u);
  EXPECT_TRUE(target("v5e:4x2").notes.empty());
  EXPECT_TRUE(target("v4").notes.empty());
  EXPECT_EQ(error(parseTarget("v5e:4x0")).text, "target 'v5e:4x0': '4x0' is not a box of chips such as 2x2");
  EXPECT_EQ(error(parseTarget("v5e:4x4x4")).text, "target 'v5e:4x4x4': v5e has 2 dimensions");
  EXPECT_EQ(error(parseTarget("v5e:32x4")).text, "target 'v5e:32x4': the largest box of v5e is 16x16");
  EXPECT_EQ(error(parseTarget("v5e:")).exit, ExitStatus::kRefused);
  EXPECT_EQ(error(parseTarget("v9:2x2")).exit, ExitStatus::kUsage);
  const Target t = target("2xv5p:4x4x4");
  EXPECT_EQ(llvm::cantFail(targetFromDocument(t.text, t.chip.json)).text, t.text);
  EXPECT_EQ(error(targetFromDocument("v4:1x1x1", t.chip.json)).code, Code::kBadTopology);
}

TEST(Target, WrapRules) {
  EXPECT_EQ(target("v5e:8x16").wrap, (std::vector<bool>{false, true}));
  EXPECT_EQ(target("v5e:2x16").wrap, (std::vector<bool>{false, false}));  // not sold
  EXPECT_EQ(target("v4:4x4x8").wrap, (std::vector<bool>{true, true, true}));
  EXPECT_EQ(target("v4:2x2x4").wrap, (std::vector<bool>{false, false, false}));
  EXPECT_EQ(target("v4:2x4x4").wrap, (std::vector<bool>{false, false, false}));
  EXPECT_EQ(target("v2:4x4").wrap, (std::vector<bool>{true, true}));
  EXPECT_EQ(target("v2:2x2").wrap, (std::vector<bool>{false, false}));
}

TEST(Target, TopologiesAndDefaults) {
  EXPECT_EQ(llvm::join(topologiesFor(chip("v5e"), 16), " "), "v5e:4x4 v5e:2x8 v5e:1x16");
  EXPECT_EQ(llvm::join(topologiesFor(chip("v4"), 8), " "), "v4:2x2x2 v4:1x2x4 v4:1x1x8");
  EXPECT_EQ(llvm::join(topologiesFor(chip("v3"), 8), " "), "v3:2x2 v3:1x4");
  EXPECT_TRUE(topologiesFor(chip("v3"), 7).empty());
  EXPECT_EQ(llvm::cantFail(defaultTarget(1)).text, "v5e:1x1");
  EXPECT_EQ(llvm::cantFail(defaultTarget(8)).text, "v5e:2x4");
  EXPECT_EQ(llvm::cantFail(defaultTarget(256)).text, "v5e:16x16");
  EXPECT_EQ(error(defaultTarget(257)).code, Code::kBadTopology);
}

// Distances by breadth-first search over the links.
std::vector<int> distances(const Target& t, int64_t from) {
  std::vector<int> distance(t.numChips(), -1);
  std::vector<int64_t> queue{from};
  distance[from] = 0;
  for (size_t i = 0; i < queue.size(); ++i)
    for (int link = 0; link < t.chip.ici_links; ++link) {
      const int64_t to = neighbour(t, queue[i], link);
      if (to < 0 || distance[to] >= 0) continue;
      distance[to] = distance[queue[i]] + 1;
      queue.push_back(to);
    }
  return distance;
}

TEST(Target, RoutesAreShortest) {
  for (const char* text : {"v5e:4x2", "v2:4x8", "v4:4x4x4", "v4:2x2x1", "v5e:1x5", "v2:5x3"}) {
    const Target t = target(text);
    for (int64_t from = 0; from < t.numChips(); ++from) {
      const std::vector<int> distance = distances(t, from);
      for (int64_t to = 0; to < t.numChips(); ++to) {
        int64_t at = from;
        int last_dim = 0;
        const auto hops = route(t, from, to);
        for (const Hop& hop : hops) {
          EXPECT_EQ(hop.chip, at);
          EXPECT_GE(hop.link / 2, last_dim);
          last_dim = hop.link / 2;
          at = neighbour(t, at, hop.link);
          EXPECT_EQ(neighbour(t, at, hop.link ^ 1), hop.chip);
        }
        EXPECT_EQ(at, to);
        EXPECT_EQ(static_cast<int>(hops.size()), distance[to]) << text << " " << from << " " << to;
      }
    }
  }
}

TEST(Target, TiesGoUp) {
  const Target t = target("v2:4x4");
  EXPECT_EQ(route(t, 0, 2)[0].link, 2);
  EXPECT_EQ(route(t, 2, 0)[0].link, 2);
  EXPECT_EQ(route(t, 0, 3)[0].link, 3);
  EXPECT_EQ(neighbour(target("v5e:2x2"), 1, 2), -1);
  EXPECT_EQ(neighbour(target("2xv5e:2x2"), 4, 2), 5);
}

}  // namespace
}  // namespace tpu::target
