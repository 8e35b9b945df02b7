// Reads object files. The bytes may be anything: every read is bounded, every count is checked against what
// is left, and the decoded program is checked like one that a person wrote.
#include "bytes.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"
#include "object_format.h"
#include "tpu/asm/check.h"
#include "tpu/asm/object.h"

namespace tpu::assembly {
namespace {

class Reader {
 public:
  Reader(llvm::StringRef bytes, llvm::StringRef name) : bytes_(bytes), name_(name) {}

  llvm::Expected<isa::Program> run() {
    if (llvm::Error error = header()) return error;
    if (llvm::Error error = section(SectionTag::kMeta, "target", [&](ByteReader& r) { return meta(r); }))
      return error;
    if (llvm::Error error = section(SectionTag::kCode, "code", [&](ByteReader& r) { return code(r); }))
      return error;
    if (llvm::Error error = section(SectionTag::kLines, "line", [&](ByteReader& r) { return lines(r); }))
      return error;
    if (llvm::Error error =
            section(SectionTag::kSymbols, "symbol", [&](ByteReader& r) { return symbols(r); }))
      return error;
    if (llvm::Error error = section(SectionTag::kMemory, "memory", [&](ByteReader& r) { return memory(r); }))
      return error;
    if (llvm::Error error =
            section(SectionTag::kSignature, "signature", [&](ByteReader& r) { return signature(r); }))
      return error;
    if (llvm::Error error =
            section(SectionTag::kDevices, "device", [&](ByteReader& r) { return devices(r); }))
      return error;
    if (!payload_.empty()) return damaged("bytes after the last section");
    if (llvm::Error error = checkProgram(p_, chip_)) {
      const Diagnostic d = takeDiagnostics(std::move(error))[0];
      return damaged(d.loc.empty() ? d.text : d.loc + ": " + d.text);
    }
    return std::move(p_);
  }

 private:
  llvm::Error damaged(const llvm::Twine& why) const { return fail(Code::kBadObject, name_, why); }

  llvm::Error header() {
    if (!isObject(bytes_)) return damaged("not an object file");
    if (bytes_.size() < kObjectHeaderBytes) return damaged("the file is truncated in its header");
    ByteReader r(bytes_.drop_front(sizeof kObjectMagic));
    const auto version = r.fixed<uint32_t>();
    if (version > kObjectVersion)
      return fail(Code::kNewerVersion, name_,
                  "object file of version " + llvm::Twine(version) + "; this tool knows version " +
                      llvm::Twine(kObjectVersion));
    const auto size = r.fixed<uint64_t>();
    const auto checksum = r.fixed<uint64_t>();
    payload_ = bytes_.drop_front(kObjectHeaderBytes);
    if (payload_.size() < size)
      return damaged("the file is truncated: " + llvm::Twine(payload_.size()) + " of " + llvm::Twine(size) +
                     " bytes");
    if (payload_.size() > size) return damaged("bytes after the end of the object");
    if (version == 0 || llvm::xxh3_64bits(payload_) != checksum) return damaged("the checksum is wrong");
    return llvm::Error::success();
  }

  template <class F>
  llvm::Error section(SectionTag tag, const char* what, F&& read) {
    ByteReader head(payload_);
    const auto found = head.fixed<uint32_t>();
    const auto size = head.fixed<uint64_t>();
    if (head.failed() || found != static_cast<uint32_t>(tag) || size > payload_.size() - 12)
      return damaged(llvm::Twine("bad ") + what + " section");
    ByteReader content(payload_.substr(12, size));
    payload_ = payload_.drop_front(12 + size);
    if (llvm::Error error = read(content)) return error;
    if (content.failed() || !content.atEnd()) return damaged(llvm::Twine("bad ") + what + " section");
    return llvm::Error::success();
  }

  llvm::Error meta(ByteReader& r) {
    p_.chip_json = r.text().str();
    p_.target = r.text().str();
    for (int64_t* v : {&p_.devices, &p_.hbm_bytes, &p_.vmem_bytes, &p_.smem_bytes, &p_.required_flops_bf16,
                       &p_.required_hbm_bytes, &p_.required_ici_bytes})
      *v = r.signedVarint();
    for (size_t n = r.count(2); n > 0 && !r.failed(); --n) {
      std::string key = r.text().str();
      p_.options.emplace_back(std::move(key), r.text().str());
    }
    return llvm::Error::success();
  }

  llvm::Error code(ByteReader& r) {
    auto chip = target::parseChip(p_.chip_json, "chip description");
    if (!chip) return damaged("bad chip description: " + takeDiagnostics(chip.takeError())[0].text);
    chip_ = std::move(*chip);
    p_.chip_json = chip_.json;  // canonical, however the object spelled it
    const SlotBases bases = slotBases(chip_);
    p_.bundles.resize(r.count(4));
    for (isa::Bundle& bundle : p_.bundles) {
      const auto mask = r.fixed<uint32_t>();
      if (uint64_t{mask} >> bases.back()) return damaged("a bundle fills slots that the chip does not have");
      for (int kind = 0; kind < isa::kNumSlots; ++kind)
        if (llvm::Error error = slots(r, mask >> bases[kind] & ((uint32_t{1} << chip_.slots[kind]) - 1),
                                      static_cast<isa::Slot>(kind), bundle))
          return error;
    }
    return llvm::Error::success();
  }

  llvm::Error slots(ByteReader& r, uint32_t mask, isa::Slot kind, isa::Bundle& bundle) {
    if (mask & (mask + 1)) return damaged("a bundle leaves a gap between slots of a kind");
    for (int n = llvm::popcount(mask); n > 0; --n) {
      auto insn = isa::decode(r.fixed<uint64_t>());
      if (!insn) return damaged(takeDiagnostics(insn.takeError())[0].text);
      if (isa::info(insn->op).slot != kind)
        return damaged("'" + isa::print(*insn) + "' stands in a slot of another kind");
      bundle.insns.push_back({*insn, 0, 0});
    }
    return llvm::Error::success();
  }

  llvm::Error lines(ByteReader& r) {
    for (size_t n = r.count(1); n > 0 && !r.failed(); --n) p_.locs.push_back(r.text().str());
    uint32_t loc = 0, op = 0;
    for (isa::Bundle& bundle : p_.bundles)
      for (isa::PlacedInstruction& placed : bundle.insns) {
        placed.loc = loc += static_cast<uint32_t>(r.signedVarint());
        placed.op = op += static_cast<uint32_t>(r.signedVarint());
      }
    return llvm::Error::success();
  }

  static uint32_t index(ByteReader& r) {
    return static_cast<uint32_t>(std::min<uint64_t>(r.varint(), UINT32_MAX));
  }

  llvm::Error symbols(ByteReader& r) {
    for (size_t n = r.count(2); n > 0 && !r.failed(); --n) {
      const uint32_t bundle = index(r);
      p_.label_at.emplace_back(bundle, r.text().str());
    }
    for (size_t n = r.count(3); n > 0 && !r.failed(); --n) {
      isa::CodeRange range;
      range.name = r.text().str();
      range.begin = index(r);
      range.end = index(r);
      p_.ranges.push_back(std::move(range));
    }
    return llvm::Error::success();
  }

  llvm::Error space(ByteReader& r, isa::Space* out) {
    const auto number = r.fixed<uint8_t>();
    if (number > static_cast<uint8_t>(isa::Space::kHost)) return damaged("unknown memory space");
    *out = static_cast<isa::Space>(number);
    return llvm::Error::success();
  }

  llvm::Error memory(ByteReader& r) {
    for (size_t n = r.count(3); n > 0 && !r.failed(); --n) {
      isa::Constant c;
      if (llvm::Error error = space(r, &c.space)) return error;
      c.address = r.signedVarint();
      const llvm::StringRef bytes = r.text();
      c.bytes.assign(bytes.bytes_begin(), bytes.bytes_end());
      p_.constants.push_back(std::move(c));
    }
    for (size_t n = r.count(6); n > 0 && !r.failed(); --n) {
      isa::PlacedBuffer b;
      b.name = r.text().str();
      if (llvm::Error error = space(r, &b.space)) return error;
      for (int64_t* v : {&b.address, &b.bytes, &b.real_bytes}) *v = r.signedVarint();
      b.loc = r.text().str();
      p_.buffers.push_back(std::move(b));
    }
    return llvm::Error::success();
  }

  llvm::Error port(ByteReader& r, isa::SignaturePort* port) {
    port->name = r.text().str();
    const auto element = parseElementType(r.text());
    if (!element) return damaged("unknown element type");
    port->element = *element;
    const size_t rank = r.count(2);
    for (size_t i = 0; i < rank; ++i) port->global_dims.push_back(r.signedVarint());
    for (size_t i = 0; i < rank; ++i) port->local_dims.push_back(r.signedVarint());
    for (size_t n = r.count(1); n > 0 && !r.failed(); --n) {
      auto& factors = port->shards.emplace_back();
      for (size_t k = r.count(2); k > 0 && !r.failed(); --k) {
        const int64_t stride = r.signedVarint();
        factors.push_back({stride, r.signedVarint()});
      }
    }
    port->layout.dense = r.fixed<uint8_t>() != 0;
    port->layout.tile_rows = static_cast<int>(r.signedVarint());
    port->layout.packing = static_cast<int>(r.signedVarint());
    if (llvm::Error error = space(r, &port->space)) return error;
    port->address = r.signedVarint();
    port->alias = static_cast<int>(r.signedVarint());
    port->loc = r.text().str();
    return llvm::Error::success();
  }

  llvm::Error signature(ByteReader& r) {
    for (auto* ports : {&p_.args, &p_.results})
      for (size_t n = r.count(11); n > 0 && !r.failed(); --n)
        if (llvm::Error error = port(r, &ports->emplace_back())) return error;
    return llvm::Error::success();
  }

  llvm::Error devices(ByteReader& r) {
    for (size_t n = r.count(1); n > 0 && !r.failed(); --n) p_.device_order.push_back(r.signedVarint());
    p_.device_table_words = r.signedVarint();
    while (!r.atEnd()) p_.device_table.push_back(r.fixed<uint32_t>());
    return llvm::Error::success();
  }

  llvm::StringRef bytes_, name_, payload_;
  isa::Program p_;
  target::Chip chip_;
};

}  // namespace

bool isObject(llvm::StringRef bytes) {
  return bytes.starts_with(llvm::StringRef(kObjectMagic, sizeof kObjectMagic));
}

llvm::Expected<isa::Program> readObject(llvm::StringRef bytes, llvm::StringRef name) {
  return Reader(bytes, name).run();
}

}  // namespace tpu::assembly
