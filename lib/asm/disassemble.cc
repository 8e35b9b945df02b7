// A program as assembly text that assembles to the same bytes.
#include "label_names.h"
#include "line_cursor.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "tpu/asm/assembly.h"
#include "tpu/serial/base64.h"
#include "tpu/target/chip.h"

namespace tpu::assembly {
namespace {

class Printer {
 public:
  Printer(const isa::Program& program, const DisassembleOptions& options, std::string& out)
      : p_(program), options_(options), os_(out), out_(out), labels_(program) {}

  void run() {
    header();
    for (const isa::SignaturePort& port : p_.args) this->port(".arg", port);
    for (const isa::SignaturePort& port : p_.results) this->port(".result", port);
    buffers();
    for (const isa::Constant& c : p_.constants) constant(c);
    deviceTable();
    for (size_t i = 1; i < p_.locs.size(); ++i) os_ << ".loc " << i << ", " << quoted(p_.locs[i]) << "\n";
    code();
  }

 private:
  // A chip that the target's name alone would not give is spelled out.
  void header() {
    const llvm::StringRef name = llvm::StringRef(p_.target).rsplit(':').first;
    auto builtin = target::parseTarget(p_.target);
    const bool known = builtin && builtin->chip.json == p_.chip_json;
    if (!builtin) llvm::consumeError(builtin.takeError());
    if (!known)
      os_ << ".chip " << name << "\n"
          << p_.chip_json << (llvm::StringRef(p_.chip_json).ends_with("\n") ? "" : "\n") << ".endchip\n";
    os_ << ".target " << quoted(p_.target) << "\n.devices " << p_.devices << "\n";
    if (!p_.device_order.empty()) {
      os_ << ".device_order ";
      llvm::interleave(p_.device_order, os_, ", ");
      os_ << "\n";
    }
    for (const auto& [key, value] : p_.options)
      os_ << ".option " << quoted(key) << ", " << quoted(value) << "\n";
    os_ << ".memory hbm=" << p_.hbm_bytes << ", vmem=" << p_.vmem_bytes << ", smem=" << p_.smem_bytes << "\n";
    os_ << ".required flops=" << p_.required_flops_bf16 << ", hbm=" << p_.required_hbm_bytes
        << ", ici=" << p_.required_ici_bytes << "\n.autoloc off\n";
  }

  void shards(const isa::SignaturePort& port) {
    os_ << ", shards=[";
    for (size_t d = 0; d < port.shards.size(); ++d) {
      os_ << (d ? ", " : "") << (port.shards[d].empty() ? "-" : "");
      for (size_t i = 0; i < port.shards[d].size(); ++i)
        os_ << (i ? "." : "") << port.shards[d][i].stride << ":" << port.shards[d][i].size;
    }
    os_ << "]";
  }

  void port(const char* directive, const isa::SignaturePort& port) {
    os_ << directive << " " << quoted(port.name) << ", " << typeText(port.element, port.global_dims) << ", " << isa::spaceName(port.space) << ":" << port.address;
    if (!port.shards.empty()) shards(port);
    const isa::Layout usual = isa::defaultLayout(port.element, port.local_dims);
    if (port.layout.dense)
      os_ << ", layout=dense";
    else if (port.layout != usual)
      os_ << ", layout=" << port.layout.tile_rows << "x" << port.layout.packing;
    if (port.alias >= 0) os_ << ", alias=" << port.alias;
    if (!port.loc.empty()) os_ << ", loc=" << quoted(port.loc);
    os_ << "\n";
  }

  void buffers() {
    for (const isa::PlacedBuffer& b : p_.buffers) {
      os_ << ".buffer " << quoted(b.name) << ", " << isa::spaceName(b.space) << ":" << b.address
          << ", bytes=" << b.bytes << ", real=" << b.real_bytes;
      if (!b.loc.empty()) os_ << ", loc=" << quoted(b.loc);
      os_ << "\n";
    }
  }

  static uint32_t wordAt(llvm::ArrayRef<uint8_t> bytes, size_t at) {
    return bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 | uint32_t{bytes[at + 3]} << 24;
  }

  // Runs of one word as .fill, the rest as lines of base64.
  void constant(const isa::Constant& c) {
    constexpr size_t kLine = 72, kRun = 64;  // bytes
    os_ << ".const " << isa::spaceName(c.space) << ":" << c.address << "\n";
    const llvm::ArrayRef<uint8_t> bytes = c.bytes;
    for (size_t at = 0; at < bytes.size();) {
      size_t run = at;
      while (run + 4 <= bytes.size() && wordAt(bytes, run) == wordAt(bytes, at)) run += 4;
      if (run - at >= kRun) {
        os_ << ".fill " << (run - at) / 4 << ", " << llvm::format_hex(wordAt(bytes, at), 1) << "\n";
        at = run;
        continue;
      }
      const size_t n = std::min(kLine, bytes.size() - at);
      os_ << ".base64 \"" << encodeBase64(bytes.slice(at, n)) << "\"\n";
      at += n;
    }
  }

  void deviceTable() {
    if (p_.device_table_words == 0) return;
    os_ << ".device_table " << p_.device_table_words << "\n";
    for (size_t at = 0; at < p_.device_table.size(); at += static_cast<size_t>(p_.device_table_words)) {
      os_ << ".row ";
      llvm::interleave(llvm::ArrayRef(p_.device_table).slice(at, static_cast<size_t>(p_.device_table_words)),
                       os_, ", ");
      os_ << "\n";
    }
  }

  // Everything that stands between two bundles: ends and beginnings of kernels, labels.
  void boundary(uint32_t at) {
    for (;;) {
      if (open_ && p_.ranges[range_].end == at) {
        os_ << ".endkernel\n";
        open_ = false;
        ++range_;
      } else if (!open_ && range_ < p_.ranges.size() && p_.ranges[range_].begin == at) {
        os_ << ".kernel " << quoted(p_.ranges[range_].name) << "\n";
        open_ = true;
      } else {
        break;
      }
    }
    for (; label_ < p_.label_at.size() && p_.label_at[label_].first == at; ++label_)
      os_ << p_.label_at[label_].second << ":\n";
    if (labels_.needsLocal(at)) os_ << ".L" << at << ":\n";
  }

  void code() {
    uint32_t at = 0;
    for (const isa::Bundle& bundle : p_.bundles) {
      boundary(at);
      source(bundle);
      this->bundle(bundle, at++);
    }
    boundary(at);
  }

  // The source line, as a comment, where it changes.
  void source(const isa::Bundle& bundle) {
    if (bundle.insns.empty() || bundle.insns[0].loc == last_loc_) return;
    last_loc_ = bundle.insns[0].loc;
    if (last_loc_) os_ << "# " << printable(p_.locs[last_loc_]) << "\n";
  }
  static std::string printable(llvm::StringRef text) {
    std::string out;
    for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    return out;
  }

  void bundle(const isa::Bundle& bundle, uint32_t at) {
    os_ << "  ";
    if (bundle.insns.empty()) os_ << "nop";
    for (size_t i = 0; i < bundle.insns.size(); ++i) {
      const isa::PlacedInstruction& placed = bundle.insns[i];
      if (i) os_ << " ; ";
      labels_.print(placed.insn, out_);
      if (placed.loc || placed.op) os_ << " !" << placed.loc;
      if (placed.op) os_ << ":" << placed.op;
    }
    if (options_.show_encoding) {
      os_ << "  # " << at << ":";
      for (const isa::PlacedInstruction& placed : bundle.insns)
        os_ << " " << llvm::format_hex_no_prefix(llvm::cantFail(isa::encode(placed.insn)), 16);
    }
    os_ << "\n";
  }

  const isa::Program& p_;
  const DisassembleOptions& options_;
  llvm::raw_string_ostream os_;  // unbuffered: out_ is always up to date
  std::string& out_;
  LabelNames labels_;
  size_t range_ = 0, label_ = 0;
  bool open_ = false;
  uint32_t last_loc_ = 0;
};

}  // namespace

std::string disassemble(const isa::Program& program, const DisassembleOptions& options) {
  std::string out;
  Printer(program, options, out).run();
  return out;
}

}  // namespace tpu::assembly
