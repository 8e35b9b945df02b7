// Writes the llo document.
#include <algorithm>

#include "tpu/llo/document.h"
#include "tpu/serial/base64.h"
#include "tpu/serial/document.h"

namespace tpu::llo {
namespace {

llvm::StringRef roleName(Role role) {
  constexpr const char* kNames[] = {"temp", "argument", "result", "constant"};
  return kNames[static_cast<int>(role)];
}
llvm::StringRef paramKind(KernelParam::Kind kind) {
  constexpr const char* kNames[] = {"hbm", "smem", "vmem", "word"};
  return kNames[kind];
}
llvm::StringRef placeKind(Place::Kind kind) {
  constexpr const char* kNames[] = {"buffer", "param", "block", "scratch"};
  return kNames[kind];
}

void writeLayout(JsonWriter& w, const isa::Layout& layout) {
  w.key("layout");
  if (layout.dense)
    w.string("dense");
  else
    w.ints({layout.tile_rows, layout.packing});
}

// Bytes that repeat one word are written as that word and its count.
void writeBytes(JsonWriter& w, const std::vector<uint8_t>& bytes) {
  const size_t n = bytes.size();
  if (n >= 64 && n % 4 == 0 && std::equal(bytes.begin() + 4, bytes.end(), bytes.begin())) {
    const uint32_t word = bytes[0] | bytes[1] << 8 | bytes[2] << 16 | uint32_t{bytes[3]} << 24;
    w.field("splat", word).field("words", static_cast<uint64_t>(n / 4));
  } else {
    w.field("base64", encodeBase64(bytes));
  }
}

class Writer {
 public:
  Writer(const Module& m, llvm::raw_ostream& os, llvm::StringRef only) : m_(m), doc_(os, "llo", only) {}

  llvm::Error run() {
    head();
    buffers();
    ports("args", m_.args, true);
    ports("results", m_.results, false);
    kernels();
    dmas();
    code();
    return doc_.finish();
  }

 private:
  void head() {
    doc_.field("target").string(m_.target);
    doc_.field("chip").string(m_.chip_json);
    doc_.field("devices").integer(m_.devices);
    doc_.field("device_order").ints(m_.device_order);
    JsonWriter& o = doc_.field("options").beginArray();
    for (const auto& [key, value] : m_.options) o.strings({key, value});
    o.endArray();
    doc_.field("required")
        .beginObject()
        .field("flops", m_.required_flops)
        .field("hbm_bytes", m_.required_hbm_bytes)
        .field("ici_bytes", m_.required_ici_bytes)
        .endObject();
    doc_.field("sems").integer(m_.num_sems);
    doc_.field("device_table_words").integer(m_.device_table_words);
    const auto words = static_cast<size_t>(m_.device_table_words);
    doc_.beginTable("device_table");
    for (size_t at = 0; words && at + words <= m_.device_table.size(); at += words) {
      JsonWriter& w = doc_.row().beginArray();
      for (size_t i = 0; i < words; ++i) w.uinteger(m_.device_table[at + i]);
      w.endArray();
    }
    doc_.endTable();
    doc_.beginTable("locs");
    for (const std::string& loc : m_.locs) doc_.row().string(loc);
    doc_.endTable();
    doc_.beginTable("call_locs");
    for (const auto& row : m_.call_locs) uints(doc_.row(), row);
    doc_.endTable();
  }

  static void uints(JsonWriter& w, llvm::ArrayRef<uint32_t> values) {
    w.beginArray();
    for (uint32_t v : values) w.uinteger(v);
    w.endArray();
  }

  void buffers() {
    doc_.beginTable("buffers");
    for (size_t i = 0; i < m_.buffers.size(); ++i) {
      const Buffer& b = m_.buffers[i];
      JsonWriter& w = doc_.row();
      w.beginObject()
          .field("id", static_cast<uint64_t>(i))
          .field("name", b.name)
          .field("space", isa::spaceName(b.space))
          .field("role", roleName(b.role));
      if (b.port >= 0) w.field("port", b.port);
      w.field("dtype", elementTypeName(b.element)).field("dims", llvm::ArrayRef<int64_t>(b.dims));
      writeLayout(w, b.layout);
      w.field("bytes", b.bytes).field("real_bytes", b.real_bytes);
      if (b.alias >= 0) w.field("alias", b.alias);
      if (b.loc != 0) w.field("loc", b.loc);
      if (!b.data.empty()) writeBytes(w, b.data);
      w.endObject();
    }
    doc_.endTable();
  }

  void ports(llvm::StringRef table, const std::vector<Port>& ports, bool argument) {
    doc_.beginTable(table);
    for (const Port& p : ports) {
      const isa::SignaturePort& s = p.signature;
      JsonWriter& w = doc_.row();
      w.beginObject().field("name", p.name).field("buffer", p.buffer);
      if (s.name != p.name) w.field("as", s.name);
      w.field("dtype", elementTypeName(s.element))
          .field("global", llvm::ArrayRef<int64_t>(s.global_dims))
          .field("local", llvm::ArrayRef<int64_t>(s.local_dims));
      if (!s.shards.empty()) {
        w.key("shards").beginArray();
        for (const auto& factors : s.shards) {
          w.beginArray();
          for (const isa::ShardFactor& f : factors) w.ints({f.stride, f.size});
          w.endArray();
        }
        w.endArray();
      }
      writeLayout(w, s.layout);
      w.field("space", isa::spaceName(s.space));
      if (argument && s.alias >= 0) w.field("alias", s.alias);
      if (!s.loc.empty()) w.field("loc", s.loc);
      w.endObject();
    }
    doc_.endTable();
  }

  static void codeHead(JsonWriter& w, const Code& code) {
    w.field("regs", llvm::ArrayRef<int64_t>({code.num_s, code.num_v, code.num_m, code.num_p}));
    w.field("units", llvm::ArrayRef<int64_t>({code.num_mxu, code.num_xlu}));
    if (!code.op_locs.empty()) {
      w.key("op_locs");
      uints(w, code.op_locs);
    }
  }

  void kernels() {
    doc_.beginTable("kernels");
    for (size_t k = 0; k < m_.kernels.size(); ++k) {
      const Kernel& kernel = m_.kernels[k];
      JsonWriter& w = doc_.row();
      w.beginObject()
          .field("id", static_cast<uint64_t>(k))
          .field("name", kernel.name)
          .field("grid", llvm::ArrayRef<int64_t>(kernel.grid));
      w.key("params").beginArray();
      for (const KernelParam& p : kernel.params)
        w.beginObject().field("kind", paramKind(p.kind)).field("name", p.name).endObject();
      w.endArray();
      w.field("scratch", llvm::ArrayRef<int64_t>(kernel.scratch))
          .field("vmem_budget", kernel.vmem_budget)
          .field("flops", kernel.flops);
      codeHead(w, kernel.code);
      w.endObject();
    }
    doc_.endTable();
    doc_.beginTable("blocks");
    for (size_t k = 0; k < m_.kernels.size(); ++k)
      for (size_t b = 0; b < m_.kernels[k].blocks.size(); ++b) {
        const PipelineBlock& block = m_.kernels[k].blocks[b];
        doc_.row()
            .beginObject()
            .field("kernel", static_cast<uint64_t>(k))
            .field("id", static_cast<uint64_t>(b))
            .field("name", block.name)
            .field("param", block.param)
            .field("dir", block.direction == Direction::kIn ? "in" : "out")
            .field("bytes", block.bytes)
            .field("step", llvm::ArrayRef<int64_t>(block.step))
            .endObject();
      }
    doc_.endTable();
    doc_.beginTable("transfers");
    for (size_t k = 0; k < m_.kernels.size(); ++k)
      for (size_t b = 0; b < m_.kernels[k].blocks.size(); ++b)
        for (const Transfer& t : m_.kernels[k].blocks[b].transfers) transfer(k, b, t);
    doc_.endTable();
    doc_.beginTable("companions");
    for (size_t c = 0; c < m_.companions.size(); ++c) {
      JsonWriter& w = doc_.row();
      w.beginObject()
          .field("id", static_cast<uint64_t>(c))
          .field("name", m_.companions[c].name)
          .field("done", registerName(isa::RegClass::kPred, m_.companions[c].done));
      codeHead(w, m_.companions[c].step);
      w.endObject();
    }
    doc_.endTable();
    doc_.beginTable("drivers");
    JsonWriter& w = doc_.row().beginObject();
    codeHead(w, m_.driver);
    w.endObject();
    doc_.endTable();
  }

  void transfer(size_t kernel, size_t block, const Transfer& t) {
    JsonWriter& w = doc_.row();
    w.beginObject()
        .field("kernel", static_cast<uint64_t>(kernel))
        .field("block", static_cast<uint64_t>(block))
        .field("hbm_offset", t.hbm_offset)
        .field("vmem_offset", t.vmem_offset)
        .field("run", t.run);
    if (t.run_edge_grid >= 0) w.field("run_edge_grid", t.run_edge_grid).field("run_edge", t.run_edge);
    w.key("dims").beginArray();
    for (const TransferDim& d : t.dims) {
      w.beginObject().field("count", d.count).field("hbm", d.hbm_stride).field("vmem", d.vmem_stride);
      if (d.edge_grid >= 0) w.field("edge_grid", d.edge_grid).field("edge", d.edge_count);
      w.endObject();
    }
    w.endArray().endObject();
  }

  template <class F>
  void forEachCode(F&& f) {
    for (size_t k = 0; k < m_.kernels.size(); ++k) f("kernel " + std::to_string(k), m_.kernels[k].code);
    for (size_t c = 0; c < m_.companions.size(); ++c)
      f("companion " + std::to_string(c), m_.companions[c].step);
    f(std::string("driver"), m_.driver);
  }

  static void scalar(JsonWriter& w, const Scalar& s) {
    if (s.is_reg)
      w.string(scalarName(s));
    else
      w.integer(s.imm);
  }
  static void scalarField(JsonWriter& w, llvm::StringRef name, const Scalar& s) {
    w.key(name);
    scalar(w, s);
  }

  static void regField(JsonWriter& w, llvm::StringRef name, int32_t reg) {
    w.field(name, registerName(isa::RegClass::kScalar, reg));
  }

  static void place(JsonWriter& w, llvm::StringRef name, const Place& p) {
    w.key(name).beginObject().field(placeKind(p.kind), p.index);
    if (p.offset != 0) w.field("offset", p.offset);
    if (!p.regs.empty()) {
      w.key("plus").beginArray();
      for (int32_t r : p.regs) w.string(registerName(isa::RegClass::kScalar, r));
      w.endArray();
    }
    w.endObject();
  }

  void dmas() {
    doc_.beginTable("dmas");
    forEachCode([&](const std::string& fn, const Code& code) {
      for (size_t i = 0; i < code.dmas.size(); ++i) {
        const Dma& d = code.dmas[i];
        JsonWriter& w = doc_.row();
        w.beginObject().field("fn", fn).field("id", static_cast<uint64_t>(i));
        place(w, "src", d.src);
        place(w, "dst", d.dst);
        w.field("run", d.run);
        w.key("dims").beginArray();
        for (const DmaDim& dim : d.dims) w.ints({dim.count, dim.src_stride, dim.dst_stride});
        w.endArray();
        if (d.remote) scalarField(w, "device", d.device);
        if (d.src_sem >= 0) w.field("src_sem", d.src_sem);
        if (d.src_sem_plus >= 0) regField(w, "src_sem_plus", d.src_sem_plus);
        if (d.dst_sem >= 0) w.field("dst_sem", d.dst_sem);
        if (d.dst_sem_plus >= 0) regField(w, "dst_sem_plus", d.dst_sem_plus);
        w.endObject();
      }
    });
    doc_.endTable();
  }

  void code() {
    doc_.beginTable("code");
    forEachCode([&](const std::string& fn, const Code& code) {
      int64_t next = 0;
      block(fn, code.body, -1, 0, next);
    });
    doc_.endTable();
  }

  void block(const std::string& fn, const Block& block_, int64_t parent, int arm, int64_t& next) {
    for (const Stmt& s : block_) {
      const int64_t id = next++;
      JsonWriter& w = doc_.row();
      w.beginObject().field("fn", fn).field("id", id);
      if (parent >= 0) w.field("parent", parent);
      if (arm > 0) w.field("arm", arm);
      if (s.op != 0) w.field("op", s.op);
      statement(w, s);
      w.endObject();
      for (size_t b = 0; b < s.blocks.size(); ++b) block(fn, s.blocks[b], id, static_cast<int>(b), next);
    }
  }

  void statement(JsonWriter& w, const Stmt& s) {
    using isa::RegClass;
    switch (s.kind) {
      case StmtKind::kInsn:
        w.field("insn", isa::print(s.insn));
        return;
      case StmtKind::kPseudo:
        w.field("do", pseudoName(s.pseudo))
            .field("to", registerName(RegClass::kScalar, s.reg))
            .field("index", s.index);
        return;
      case StmtKind::kLoop:
        w.field("do", "loop").field("to", registerName(RegClass::kScalar, s.reg));
        scalarField(w, "trip", s.amount);
        return;
      case StmtKind::kWhile:
      case StmtKind::kIf:
        w.field("do", stmtName(s.kind))
            .field("pred", (s.pred_neg ? "!" : "") + registerName(RegClass::kPred, s.reg));
        if (s.kind == StmtKind::kIf && s.blocks.size() != 2)
          w.field("arms", static_cast<uint64_t>(s.blocks.size()));
        return;
      case StmtKind::kCall:
        return call(w, s);
      case StmtKind::kDma:
        w.field("do", "dma").field("dma", s.index);
        return;
      case StmtKind::kSemRead:
        w.field("do", "sem.read").field("to", registerName(RegClass::kScalar, s.reg)).field("sem", s.index);
        if (s.sem_plus >= 0) regField(w, "plus", s.sem_plus);
        return;
      case StmtKind::kHook:
        w.field("do", "hook");
        return;
      case StmtKind::kDrain:
        w.field("do", "drain").field("companion", s.index);
        return;
      case StmtKind::kSemWait:
      case StmtKind::kSemAdd:
      case StmtKind::kSemSignal:
        w.field("do", stmtName(s.kind)).field("sem", s.index);
        if (s.sem_plus >= 0) regField(w, "plus", s.sem_plus);
        scalarField(w, "amount", s.amount);
        if (s.kind == StmtKind::kSemSignal) scalarField(w, "device", s.device);
        return;
    }
  }

  void call(JsonWriter& w, const Stmt& s) {
    w.field("do", "call").field("kernel", s.index);
    w.key("args").beginArray();
    for (const CallArg& a : s.args) {
      w.beginObject();
      if (a.is_buffer) w.field("buffer", a.buffer);
      if (!a.is_buffer)
        scalarField(w, "word", a.offset);
      else if (a.offset.is_reg || a.offset.imm != 0)
        scalarField(w, "offset", a.offset);
      w.endObject();
    }
    w.endArray();
    if (!s.companions.empty()) {
      w.key("companions").beginArray();
      for (int32_t c : s.companions) w.integer(c);
      w.endArray();
    }
    if (s.call_locs >= 0) w.field("locs", s.call_locs);
  }

  const Module& m_;
  DocumentWriter doc_;
};

}  // namespace

llvm::Error writeDocument(const Module& module, llvm::raw_ostream& os, llvm::StringRef only) {
  return Writer(module, os, only).run();
}

std::string writeDocument(const Module& module) {
  std::string out;
  llvm::raw_string_ostream os(out);
  llvm::cantFail(writeDocument(module, os));
  return out;
}

}  // namespace tpu::llo
