// Writes the `bundles` document. An instruction is one string; branch targets are named by the table
// "labels", or .L<bundle>.
#include "label_names.h"
#include "tpu/asm/program_document.h"
#include "tpu/serial/base64.h"
#include "tpu/serial/document.h"

namespace tpu::assembly {
namespace {

constexpr llvm::StringRef kStage = "bundles";

// ---- writing

void writeLayout(JsonWriter& w, const isa::Layout& layout) {
  w.key("layout");
  if (layout.dense)
    w.string("dense");
  else
    w.ints({layout.tile_rows, layout.packing});
}

void writePort(JsonWriter& w, const isa::SignaturePort& port, bool argument) {
  w.beginObject()
      .field("name", port.name)
      .field("dtype", elementTypeName(port.element))
      .field("global", llvm::ArrayRef<int64_t>(port.global_dims));
  w.field("local", llvm::ArrayRef<int64_t>(port.local_dims));
  if (!port.shards.empty()) {
    w.key("shards").beginArray();
    for (const auto& factors : port.shards) {
      w.beginArray();
      for (const isa::ShardFactor& f : factors) w.ints({f.stride, f.size});
      w.endArray();
    }
    w.endArray();
  }
  writeLayout(w, port.layout);
  w.field("space", isa::spaceName(port.space)).field("address", port.address);
  if (argument && port.alias >= 0) w.field("alias", port.alias);
  if (!port.loc.empty()) w.field("loc", port.loc);
  w.endObject();
}

class Writer {
 public:
  Writer(const isa::Program& program, llvm::raw_ostream& os, llvm::StringRef only)
      : p_(program), doc_(os, kStage, only), labels_(program) {}

  llvm::Error run() {
    head();
    signature();
    memory();
    tables();
    code();
    return doc_.finish();
  }

 private:
  void head() {
    doc_.field("target").string(p_.target);
    doc_.field("chip").raw(llvm::StringRef(p_.chip_json).rtrim());
    doc_.field("devices").integer(p_.devices);
    doc_.field("device_order").ints(p_.device_order);
    JsonWriter& o = doc_.field("options").beginArray();
    for (const auto& [key, value] : p_.options) o.strings({key, value});
    o.endArray();
    doc_.field("memory")
        .beginObject()
        .field("hbm", p_.hbm_bytes)
        .field("vmem", p_.vmem_bytes)
        .field("smem", p_.smem_bytes)
        .endObject();
    doc_.field("required")
        .beginObject()
        .field("flops", p_.required_flops_bf16)
        .field("hbm_bytes", p_.required_hbm_bytes)
        .field("ici_bytes", p_.required_ici_bytes)
        .endObject();
  }

  void signature() {
    doc_.beginTable("args");
    for (const isa::SignaturePort& port : p_.args) writePort(doc_.row(), port, true);
    doc_.endTable();
    doc_.beginTable("results");
    for (const isa::SignaturePort& port : p_.results) writePort(doc_.row(), port, false);
    doc_.endTable();
  }

  void memory() {
    doc_.beginTable("buffers");
    for (const isa::PlacedBuffer& b : p_.buffers) {
      JsonWriter& w = doc_.row();
      w.beginObject()
          .field("name", b.name)
          .field("space", isa::spaceName(b.space))
          .field("address", b.address)
          .field("bytes", b.bytes)
          .field("real_bytes", b.real_bytes);
      if (!b.loc.empty()) w.field("loc", b.loc);
      w.endObject();
    }
    doc_.endTable();
    doc_.beginTable("constants");
    for (const isa::Constant& c : p_.constants) constant(doc_.row(), c);
    doc_.endTable();
  }

  // Bytes that repeat one word are written as that word and its count.
  static void constant(JsonWriter& w, const isa::Constant& c) {
    w.beginObject().field("space", isa::spaceName(c.space)).field("address", c.address);
    const size_t n = c.bytes.size();
    if (n >= 64 && n % 4 == 0 && std::equal(c.bytes.begin() + 4, c.bytes.end(), c.bytes.begin())) {
      const uint32_t word = c.bytes[0] | c.bytes[1] << 8 | c.bytes[2] << 16 | uint32_t{c.bytes[3]} << 24;
      w.field("splat", word).field("words", static_cast<uint64_t>(n / 4));
    } else {
      w.field("base64", encodeBase64(c.bytes));
    }
    w.endObject();
  }

  void tables() {
    doc_.field("device_table_words").integer(p_.device_table_words);
    doc_.beginTable("device_table");
    const auto words = static_cast<size_t>(p_.device_table_words);
    for (size_t at = 0; words && at < p_.device_table.size(); at += words) {
      JsonWriter& w = doc_.row().beginArray();
      for (size_t i = 0; i < words; ++i) w.uinteger(p_.device_table[at + i]);
      w.endArray();
    }
    doc_.endTable();
    doc_.beginTable("locs");
    for (const std::string& loc : p_.locs) doc_.row().string(loc);
    doc_.endTable();
    doc_.beginTable("labels");
    for (const auto& [bundle, name] : p_.label_at)
      doc_.row().beginObject().field("pc", bundle).field("name", name).endObject();
    doc_.endTable();
    doc_.beginTable("kernels");
    for (const isa::CodeRange& range : p_.ranges)
      doc_.row()
          .beginObject()
          .field("name", range.name)
          .field("begin", range.begin)
          .field("end", range.end)
          .endObject();
    doc_.endTable();
  }

  // One row per bundle; "kernel" is the row of the table of kernels it belongs to.
  void code() {
    doc_.beginTable("bundles");
    size_t range = 0;
    for (uint32_t pc = 0; pc < p_.bundles.size(); ++pc) {
      while (range < p_.ranges.size() && p_.ranges[range].end <= pc) ++range;
      JsonWriter& w = doc_.row();
      w.beginObject().field("pc", pc);
      if (range < p_.ranges.size() && p_.ranges[range].begin <= pc)
        w.field("kernel", static_cast<uint64_t>(range));
      bundle(w, p_.bundles[pc]);
      w.endObject();
    }
    doc_.endTable();
  }

  void bundle(JsonWriter& w, const isa::Bundle& bundle) {
    w.key("insns").beginArray();
    bool locs = false, ops = false;
    for (const isa::PlacedInstruction& placed : bundle.insns) {
      text_.clear();
      labels_.print(placed.insn, text_);
      w.string(text_);
      locs |= placed.loc != 0;
      ops |= placed.op != 0;
    }
    w.endArray();
    if (locs) numbers(w, "loc", bundle, &isa::PlacedInstruction::loc);
    if (ops) numbers(w, "op", bundle, &isa::PlacedInstruction::op);
  }

  // One number where all instructions share it.
  static void numbers(JsonWriter& w, llvm::StringRef key, const isa::Bundle& bundle,
                      uint32_t isa::PlacedInstruction::*member) {
    w.key(key);
    const uint32_t first = bundle.insns[0].*member;
    if (llvm::all_of(bundle.insns, [&](const isa::PlacedInstruction& p) { return p.*member == first; })) {
      w.uinteger(first);
      return;
    }
    w.beginArray();
    for (const isa::PlacedInstruction& placed : bundle.insns) w.uinteger(placed.*member);
    w.endArray();
  }

  const isa::Program& p_;
  DocumentWriter doc_;
  LabelNames labels_;
  std::string text_;
};

}  // namespace

llvm::Error writeProgramDocument(const isa::Program& program, llvm::raw_ostream& os, llvm::StringRef only) {
  return Writer(program, os, only).run();
}

std::string writeProgramDocument(const isa::Program& program) {
  std::string out;
  llvm::raw_string_ostream os(out);
  llvm::cantFail(writeProgramDocument(program, os));
  return out;
}

}  // namespace tpu::assembly
