// Times are made of latencies: for every timing parameter of a chip file a small program whose cycles follow
// on paper from the rules of tpu/emulate/timing.h. Each row is run with the parameter as it is and doubled;
// both must give what the paper says, and the two must differ.
#include <cmath>
#include <functional>
#include <set>

#include "testing.h"

namespace tpu::emulate {
namespace {

using namespace testing;
using target::Chip;

struct Row {
  std::string parameter;  // "vector_alu.latency", "dma_done_ns"
  std::string fields;     // of the chip, besides the parameter
  std::function<std::string(const Chip&)> text;
  std::function<int64_t(const Chip&)> paper;  // cycles
  std::vector<Copy> copies;                   // descriptors at 1024, 1104, ...
  std::string box = "1x1";
  int64_t devices = 1;
};

std::string repeat(int n, const std::string& line) {
  std::string text;
  for (int i = 0; i < n; ++i) text += line + "\n";
  return text;
}
std::function<std::string(const Chip&)> plain(const std::string& text) {
  return [text](const Chip&) { return text + "\nhalt\n"; };
}

int64_t latency(const Chip& c, const std::string& cls) { return c.timing(cls).latency; }
int64_t interval(const Chip& c, const std::string& cls) { return c.timing(cls).interval; }

// ---- rows of latency classes

// `first` issues at 0, then n instructions each wait for the one before; halt follows the last.
Row chain(const std::string& cls, const std::string& first, const std::string& first_cls,
          const std::string& link) {
  return {cls + ".latency",
          "",
          plain(first + "\n" + repeat(10, link)),
          [=](const Chip& c) { return latency(c, first_cls) + 9 * latency(c, cls) + 2; },
          {}};
}
// n independent instructions through one slot or unit.
Row stream(const std::string& cls, const std::string& line, int n = 8) {
  return {cls + ".interval",
          "",
          plain(repeat(n, line)),
          [=](const Chip& c) { return (n - 1) * interval(c, cls) + 2; },
          {}};
}
// `use` waits for `make`, which issues at 0.
Row pair(const std::string& cls, const std::string& make, const std::string& use) {
  return {
      cls + ".latency", "", plain(make + "\n" + use), [=](const Chip& c) { return latency(c, cls) + 2; }, {}};
}

void scalarRows(std::vector<Row>& rows) {
  rows.push_back(chain("scalar_alu", "smov s1, 1", "scalar_alu", "sadd s1, s1, 1"));
  rows.push_back(stream("scalar_alu", "smov s1, 1"));
  rows.push_back(chain("scalar_mul", "smov s1, 1", "scalar_alu", "smul s1, s1, 3"));
  rows.push_back(stream("scalar_mul", "smul s1, s2, 3"));
  rows.push_back(chain("scalar_div", "smov s1, 1", "scalar_alu", "sdiv.u32 s1, s1, 3"));
  rows.push_back(stream("scalar_div", "sdiv.u32 s1, s2, 3"));
  rows.push_back(chain("scalar_load", "smov s1, 0", "scalar_alu", "sld s1, [s1]"));
  rows.push_back(stream("scalar_load", "sld s1, [0]"));
  rows.push_back(pair("scalar_store", "sst [2048], s1", "dma.start 1024"));
  rows.back().copies = {{}};
  rows.push_back(stream("scalar_store", "sst [2048], s1"));
  rows.push_back({"branch.latency",
                  "",
                  [](const Chip& c) {
                    const std::string delay = repeat(c.branch_delay_bundles, "nop");
                    return "br a\n" + delay + "a:\nbr b\n" + delay + "b:\nbr c\n" + delay + "c:\nhalt\n";
                  },
                  [](const Chip& c) {
                    return 3 * std::max<int64_t>(c.branch_delay_bundles + 1, latency(c, "branch")) + 1;
                  },
                  {}});
  rows.push_back(rows.back());
  rows.back().parameter = "branch_delay_bundles";
  rows.push_back({"branch.interval",
                  ",\"branch_delay_bundles\":0,\"timings\":{\"branch\":{\"latency\":1}}",
                  plain("br a\na:\nbr b\nb:\nbr c\nc:"),
                  [](const Chip& c) { return 3 * interval(c, "branch") + 1; },
                  {}});
  rows.push_back(chain("semaphore", "smov s1, 0", "scalar_alu", "sem.read s1, s1"));
  rows.push_back({"semaphore.interval",
                  "",
                  plain(repeat(8, "sem.read s1, 0")),
                  [](const Chip& c) { return 8 * interval(c, "semaphore") + 1; },
                  {}});  // halt takes the same slot
  rows.push_back(stream("v2s_push", "vtos v1"));
  rows.push_back(pair("v2s_push", "vtos v1", "spop s1"));
  rows.push_back({"v2s_pop.latency",
                  "",
                  plain("vtos v1\nspop s1\nsmov s2, s1"),
                  [](const Chip& c) { return latency(c, "v2s_push") + latency(c, "v2s_pop") + 2; },
                  {}});
  rows.push_back({"v2s_pop.interval",
                  "",
                  plain(repeat(4, "vtos v1") + "nop 30\n" + repeat(4, "spop s1")),
                  [](const Chip& c) { return 34 + 3 * interval(c, "v2s_pop") + 2; },
                  {}});
}

void vectorRows(std::vector<Row>& rows) {
  rows.push_back(chain("vector_alu", "vimm v1, 0", "vector_alu", "vadd.s32 v1, v1, v1"));
  rows.push_back(stream("vector_alu", "vadd.s32 v1, v2, v2"));
  rows.push_back(chain("vector_mul", "vimm v1, 0", "vector_alu", "vmul.s32 v1, v1, v1"));
  rows.push_back(stream("vector_mul", "vmul.s32 v1, v2, v2"));
  rows.push_back(pair("vector_load", "vld v1, [0]", "vadd.s32 v2, v1, v1"));
  rows.push_back(stream("vector_load", "vld v1, [0]"));
  rows.push_back(pair("vector_store", "vst [65536], v1", "dma.start 1024"));
  rows.back().copies = {{}};
  rows.push_back(stream("vector_store", "vst [0], v1"));
  rows.push_back(pair("eup_push", "vrcp.f32 v1", "vpop.eup v2"));
  rows.push_back(stream("eup_push", "vrcp.f32 v1"));
  rows.push_back({"pop.latency",
                  "",
                  plain("vrcp.f32 v1\nvpop.eup v2\nvadd.s32 v3, v2, v2"),
                  [](const Chip& c) { return latency(c, "eup_push") + latency(c, "pop") + 2; },
                  {}});
  rows.push_back({"pop.interval",
                  "",
                  plain(repeat(4, "vrcp.f32 v1") + "nop 30\n" + repeat(4, "vpop.eup v2")),
                  [](const Chip& c) { return 3 * interval(c, "eup_push") + 31 + 3 * interval(c, "pop") + 2; },
                  {}});
  rows.push_back(pair("xlu_reduce", "vadd.xlane.f32 xlu0, v1", "vpop.xlu v2, xlu0"));
  rows.push_back(stream("xlu_reduce", "vadd.xlane.f32 xlu0, v1"));
  rows.push_back(pair("xlu_permute", "vrot.lane xlu1, v1, 3", "vpop.xlu v2, xlu1"));
  rows.push_back(stream("xlu_permute", "vrot.lane xlu1, v1, 3"));
  // The push holds its unit as long as it is under way.
  rows.push_back(
      {"xpose_push.latency",
       "",
       plain("vxpose xlu0, v1, 0\nvxpose.go xlu0, 0, 8"),
       [](const Chip& c) { return std::max(latency(c, "xpose_push"), interval(c, "xpose_push")) + 2; },
       {}});
  rows.push_back(stream("xpose_push", "vxpose xlu0, v1, 0"));
  rows.push_back(pair("xpose_go", "vxpose.go xlu0, 0, 8", "vpop.trf v2, xlu0"));
  rows.push_back(
      {"xpose_go.interval",
       "",
       plain("vxpose.go xlu0, 0, 128\n" + repeat(16, "vpop.trf v2, xlu0")),
       [](const Chip& c) { return latency(c, "xpose_go") + 15 * interval(c, "xpose_go") / 16 + 2; },
       {}});
  // Banks: rows 0, 4, .. 28 fall two by two into 16 banks, so the result comes a cycle later.
  rows.push_back({"vmem_banks",
                  "",
                  plain("vld.strided v1, [0], 4, 0xff\nvadd.s32 v2, v1, v1"),
                  [](const Chip& c) { return latency(c, "vector_load") + (c.vmem_banks >= 32 ? 0 : 1) + 2; },
                  {}});
}

void matrixRows(std::vector<Row>& rows) {
  const std::string all = ",\"mxu_types\":[\"f32\",\"bf16\",\"s8\",\"u8\",\"f8e4m3fn\",\"f8e5m2\"]";
  rows.push_back(pair("mat_push", "vmatpush.bf16 mxu0, v1, 0, 0, 0", "vlatch mxu0, 0"));
  rows.push_back(stream("mat_push", "vmatpush.bf16 mxu0, v1, 0, 0, 0"));
  rows.push_back(pair("mat_push_t", "vmatpush.t.bf16 mxu0, v1, 0, 0, 0", "vlatch mxu0, 0"));
  rows.push_back(stream("mat_push_t", "vmatpush.t.bf16 mxu0, v1, 0, 0, 0"));
  rows.push_back({"latch.latency",
                  "",
                  plain("vmatpush.bf16 mxu0, v1, 0, 0, 0\nvlatch mxu0, 0\nvmatmul.bf16 mxu0, v1, 0"),
                  [](const Chip& c) { return latency(c, "mat_push") + latency(c, "latch") + 2; },
                  {}});
  rows.push_back({"latch.interval",
                  "",
                  plain("vmatpush.bf16 mxu0, v1, 0, 0, 0\nvlatch mxu0, 0\nvmatpush.bf16 mxu0, v1, 0, 0, 0"),
                  [](const Chip& c) { return latency(c, "mat_push") + interval(c, "latch") + 2; },
                  {}});
  for (const std::string type : {"f32", "bf16", "s8", "u8", "f8e4m3fn", "f8e5m2"}) {
    const std::string load = "vmatpush." + type + " mxu0, v1, 0, 0, 0\nvlatch mxu0, 0\n",
                      mul = "vmatmul." + type + " mxu0, v1, 0\n";
    const auto before = [](const Chip& c) { return latency(c, "mat_push") + latency(c, "latch"); };
    // The last of its entries comes when the last rows have run through.
    const int entries = type == "f32" ? 1 : type == "bf16" ? 2 : 4;
    rows.push_back(
        {"matmul_" + type + ".latency",
         all,
         plain(load + mul + repeat(entries, "vpop.mrf v2, mxu0")),
         [=](const Chip& c) {
           return before(c) + latency(c, "matmul_" + type) +
                  std::max<int64_t>(entries - 1, (entries - 1) * interval(c, "matmul_" + type) / entries) + 2;
         },
         {}});
    rows.push_back({"matmul_" + type + ".interval",
                    all,
                    plain(load + repeat(4, mul)),
                    [=](const Chip& c) { return before(c) + 3 * interval(c, "matmul_" + type) + 2; },
                    {}});
  }
}

// ---- transfers. Cycles as real numbers; the waiter issues `semaphore` cycles after the amount has come.

double cyclesOf(const Chip& c, double ns) { return ns * static_cast<double>(c.clock_hz) * 1e-9; }
double hbm(const Chip& c, double bytes) {
  return bytes * static_cast<double>(c.clock_hz) / static_cast<double>(c.hbm_sustained_bytes_per_s);
}
double wire(const Chip& c, double bytes) {
  return bytes * static_cast<double>(c.clock_hz) / static_cast<double>(c.ici_sustained_bytes_per_s);
}
// A transfer started at 0 whose service takes `service` cycles, waited for, then halt.
int64_t waited(const Chip& c, double service) {
  const double come = static_cast<double>(latency(c, "dma_issue")) +
                      cyclesOf(c, static_cast<double>(c.dma_latency_ns)) + service +
                      cyclesOf(c, static_cast<double>(c.dma_done_ns));
  return static_cast<int64_t>(std::ceil(come - 0.001)) + latency(c, "semaphore") + 2;
}

void transferRows(std::vector<Row>& rows) {
  const auto wait = [](int64_t bytes) {
    return plain("dma.start 1024\nsem.wait 0, " + std::to_string(bytes));
  };
  const Copy load{.run = 65536};
  const auto load_paper = [](const Chip& c) { return waited(c, hbm(c, 65536)); };
  for (const char* parameter :
       {"dma_issue.latency", "dma_latency_ns", "dma_done_ns", "hbm_sustained_bytes_per_s", "clock_hz"})
    rows.push_back(
        {parameter, ",\"hbm_nominal_bytes_per_s\":2000000000000", wait(65536), load_paper, {load}});
  rows.push_back({"dma_issue.interval",
                  "",
                  plain(repeat(8, "dma.start 1024")),
                  [](const Chip& c) { return 8 * interval(c, "dma_issue") + 1; },
                  {{.from = isa::Space::kHbm, .to = isa::Space::kHbm}}});
  // Starting the same transfer again would touch owned memory, so each start has its own.
  rows.back().text = [](const Chip&) {
    std::string text;
    for (int i = 0; i < 8; ++i) text += "dma.start " + std::to_string(1024 + 80 * i) + "\n";
    return text + "halt\n";
  };
  rows.back().copies.clear();
  for (int i = 0; i < 8; ++i) rows.back().copies.push_back({.dest = 512 * i});
  // Within VMEM nothing is slower than the port: 4 KiB chunks, each a read and a write at the same time.
  rows.push_back(
      {"vmem_dma_bytes_per_cycle",
       "",
       wait(65536),
       [](const Chip& c) { return waited(c, 65536.0 / static_cast<double>(c.vmem_dma_bytes_per_cycle)); },
       {{.from = isa::Space::kVmem, .to = isa::Space::kVmem, .dest = 1 << 20, .run = 65536}}});
  // Runs of 480 bytes at multiples of 512: HBM reads whole granules.
  rows.push_back({"dma_granule_bytes",
                  "",
                  wait(64 * 480),
                  [](const Chip& c) {
                    return waited(c, hbm(c, 64 * (480 + c.dma_granule_bytes - 1) / c.dma_granule_bytes *
                                                c.dma_granule_bytes));
                  },
                  {{.run = 480, .n = {64, 1, 1}, .from_stride = {512, 0, 0}, .to_stride = {512, 0, 0}}}});
  rows.back().paper = [](const Chip& c) {
    const int64_t granules = (480 + c.dma_granule_bytes - 1) / c.dma_granule_bytes;
    return waited(c, hbm(c, static_cast<double>(64 * granules * c.dma_granule_bytes)));
  };
  // Short runs: one per cycle, whatever the memories could do.
  rows.push_back({"",
                  "",
                  wait(1024),
                  [](const Chip& c) { return waited(c, 256); },
                  {{.run = 4, .n = {256, 1, 1}, .from_stride = {32, 0, 0}, .to_stride = {4, 0, 0}}}});
  // A queue of two: the third start waits for the first transfer to end; with four it does not.
  rows.push_back({"dma_queue_depth",
                  ",\"dma_queue_depth\":2",
                  plain("dma.start 1024\ndma.start 1104\ndma.start 1184"),
                  [](const Chip& c) {
                    if (c.dma_queue_depth >= 3) return int64_t{4};
                    return waited(c, hbm(c, 65536)) - latency(c, "semaphore");
                  },
                  {load,
                   {.source = 1 << 20, .dest = 1 << 20, .run = 512},
                   {.source = 2 << 20, .dest = 2 << 20, .run = 512}}});
}

void linkRows(std::vector<Row>& rows) {
  // Device 0 sends to device 3 of a line; all run the same text, so devices branch on their number.
  const auto text = [](int64_t bytes) {
    return plain("sld s1, [0]\nscmp.eq p0, s1, 0; scmp.eq p1, s1, 3\n@p0 dma.start 1024\n@p1 sem.wait 0, " +
                 std::to_string(bytes));
  };
  const auto paper = [](int hops, int64_t bytes) {
    return [=](const Chip& c) {
      const double start =
          static_cast<double>(latency(c, "scalar_load") + latency(c, "scalar_alu") + latency(c, "dma_issue"));
      const double packet = static_cast<double>(std::min<int64_t>(bytes, c.ici_packet_bytes));
      const double read = packet / static_cast<double>(c.vmem_dma_bytes_per_cycle);
      const double come = start + cyclesOf(c, static_cast<double>(c.dma_latency_ns)) + read +
                          hops * cyclesOf(c, static_cast<double>(c.ici_hop_ns)) +
                          wire(c, static_cast<double>(bytes)) +
                          cyclesOf(c, static_cast<double>(c.dma_done_ns));
      return static_cast<int64_t>(std::ceil(come - 0.001)) + latency(c, "semaphore") + 2;
    };
  };
  const Copy far{.from = isa::Space::kVmem, .dest = 1 << 20, .device = 3, .run = 65536};
  for (const char* parameter : {"ici_hop_ns", "ici_sustained_bytes_per_s", "ici_packet_bytes"})
    rows.push_back({parameter,
                    ",\"ici_nominal_bytes_per_s\":100000000000",
                    text(65536),
                    paper(3, 65536),
                    {far},
                    "4x1",
                    4});
}

std::vector<Row> table() {
  std::vector<Row> rows;
  scalarRows(rows);
  vectorRows(rows);
  matrixRows(rows);
  transferRows(rows);
  linkRows(rows);
  // Instruction memory: entering a block costs its reload; three blocks in a loop do not stay in room for
  // two.
  rows.push_back({"imem_reload_cycles",
                  ",\"imem_reload_cycles\":300",
                  plain("nop 300"),
                  [](const Chip& c) { return 2 * int64_t{c.imem_reload_cycles} + 301; },
                  {}});
  rows.push_back(
      {"imem_block_bundles",
       ",\"imem_reload_cycles\":300",
       plain("nop 600"),
       [](const Chip& c) { return (600 + c.imem_block_bundles) / c.imem_block_bundles * int64_t{300} + 601; },
       {}});
  rows.push_back(
      {"imem_bundles",
       ",\"imem_reload_cycles\":300,\"imem_bundles\":512",
       plain("smov s1, 3\nloop:\nnop 600\nssub s1, s1, 1\nscmp.gt p0, s1, 0\n@p0 br loop\nnop 4"),
       [](const Chip& c) { return (c.imem_bundles >= 768 ? 3 : 9) * int64_t{300} + 1 + 3 * 607 + 1; },
       {}});
  return rows;
}

// The parameter doubled, as a field of the chip file.
std::string doubled(const std::string& parameter, const Chip& c) {
  const auto [name, part] = llvm::StringRef(parameter).split('.');
  if (!part.empty()) {
    const target::Timing t = c.timing(name);
    return ",\"timings\":{\"" + name.str() + "\":{\"" + part.str() +
           "\":" + std::to_string(2 * (part == "latency" ? t.latency : t.interval)) + "}}";
  }
  const std::pair<const char*, int64_t> fields[] = {
      {"branch_delay_bundles", c.branch_delay_bundles},
      {"imem_bundles", c.imem_bundles},
      {"imem_reload_cycles", c.imem_reload_cycles},
      {"imem_block_bundles", c.imem_block_bundles},
      {"vmem_banks", c.vmem_banks},
      {"dma_latency_ns", c.dma_latency_ns},
      {"dma_done_ns", c.dma_done_ns},
      {"dma_queue_depth", c.dma_queue_depth},
      {"dma_granule_bytes", c.dma_granule_bytes},
      {"vmem_dma_bytes_per_cycle", c.vmem_dma_bytes_per_cycle},
      {"hbm_sustained_bytes_per_s", c.hbm_sustained_bytes_per_s},
      {"ici_sustained_bytes_per_s", c.ici_sustained_bytes_per_s},
      {"ici_hop_ns", c.ici_hop_ns},
      {"ici_packet_bytes", c.ici_packet_bytes},
      {"clock_hz", c.clock_hz}};
  for (const auto& [field, value] : fields)
    if (name == field) return ",\"" + name.str() + "\":" + std::to_string(2 * value);
  ADD_FAILURE() << "no such parameter: " << parameter;
  return "";
}

// Later fields win; a group of timings is merged by hand.
std::string join(const std::string& fields, const std::string& more) {
  const std::string group = ",\"timings\":{";
  if (llvm::StringRef(fields).contains(group) && llvm::StringRef(more).starts_with(group)) {
    std::string joined = fields;
    const size_t at = joined.find(group) + group.size();
    const std::string inner = more.substr(group.size(), more.size() - group.size() - 1);
    const size_t own = inner.find(":{") + 2;  // the same class: put the second part behind the first
    const std::string cls = inner.substr(0, own);
    if (const size_t there = joined.find(cls, at); there != std::string::npos)
      return joined.insert(there + cls.size(), inner.substr(own, inner.size() - own - 1) + ",");
    return joined.insert(at, inner + ",");
  }
  const std::string key = more.substr(0, more.find(':') + 1);
  if (const size_t at = fields.find(key); at != std::string::npos && more != "") {
    std::string joined = fields;
    size_t end = at + key.size();
    while (end < joined.size() && joined[end] != ',') ++end;
    return joined.replace(at, end - at, more);
  }
  return fields + more;
}

int64_t measure(const Row& row, const std::string& fields, const Chip& chip) {
  isa::Program p = programFor(fields, row.box, row.text(chip), row.devices);
  int64_t at = 1024;
  for (const Copy& c : row.copies) addDescriptor(p, at, c), at += isa::kDmaWords * 4;
  return cycles(p);
}

TEST(Timing, EveryParameterCountsAsOnPaper) {
  for (const Row& row : table()) {
    const bool reload = llvm::StringRef(row.fields).contains("imem_reload");
    const std::string fields = row.fields + (reload ? "" : ",\"imem_reload_cycles\":0");
    const Chip chip = chipWith(fields);
    const int64_t once = measure(row, fields, chip);
    EXPECT_EQ(once, row.paper(chip)) << row.parameter;
    if (row.parameter.empty()) continue;
    const std::string more = join(fields, doubled(row.parameter, chip));
    const Chip twice = chipWith(more);
    const int64_t then = measure(row, more, twice);
    EXPECT_EQ(then, row.paper(twice)) << row.parameter << " doubled";
    llvm::outs() << "timing " << row.parameter << ": " << row.paper(chip) << " cycles on paper, " << once << " run; doubled "
                 << row.paper(twice) << ", " << then << '\n';
    llvm::outs().flush();
    EXPECT_NE(once, row.paper(twice)) << row.parameter << " does not show";
  }
}

TEST(Timing, TheTableIsComplete) {
  std::set<std::string> have;
  for (const Row& row : table()) have.insert(row.parameter);
  for (int i = 0; i < isa::kNumLatencyClasses; ++i) {
    const std::string cls = isa::latencyClassName(static_cast<isa::LatencyClass>(i)).str();
    EXPECT_TRUE(have.count(cls + ".latency")) << cls;
    EXPECT_TRUE(have.count(cls + ".interval")) << cls;
  }
  for (const char* field :
       {"clock_hz", "branch_delay_bundles", "imem_bundles", "imem_reload_cycles", "imem_block_bundles",
        "vmem_banks", "dma_latency_ns", "dma_done_ns", "dma_queue_depth", "dma_granule_bytes",
        "vmem_dma_bytes_per_cycle", "hbm_sustained_bytes_per_s", "ici_sustained_bytes_per_s", "ici_hop_ns",
        "ici_packet_bytes"})
    EXPECT_TRUE(have.count(field)) << field;
}

}  // namespace
}  // namespace tpu::emulate
