// Writes object files: a header with a checksum, then tagged sections (see object_format.h).
#include <array>

#include "bytes.h"
#include "llvm/Support/xxhash.h"
#include "object_format.h"
#include "tpu/asm/check.h"
#include "tpu/asm/object.h"

namespace tpu::assembly {
namespace {

class Writer {
 public:
  explicit Writer(const isa::Program& program) : p_(program) {}

  llvm::Expected<std::string> run(const target::Chip& chip) {
    meta();
    if (llvm::Error error = code(chip)) return error;
    lines();
    symbols();
    memory();
    signature();
    devices();
    return finish();
  }

 private:
  void section(SectionTag tag, ByteWriter& content) {
    payload_.fixed(static_cast<uint32_t>(tag));
    payload_.fixed<uint64_t>(content.str().size());
    payload_.raw(content.str().data(), content.str().size());
  }

  void meta() {
    ByteWriter w;
    w.text(p_.chip_json);
    w.text(p_.target);
    for (int64_t v : {p_.devices, p_.hbm_bytes, p_.vmem_bytes, p_.smem_bytes, p_.required_flops_bf16,
                      p_.required_hbm_bytes, p_.required_ici_bytes})
      w.signedVarint(v);
    w.varint(p_.options.size());
    for (const auto& [key, value] : p_.options) w.text(key), w.text(value);
    section(SectionTag::kMeta, w);
  }

  // Per bundle a mask of its slots, then the words of those slots.
  llvm::Error code(const target::Chip& chip) {
    ByteWriter w;
    const SlotBases bases = slotBases(chip);
    w.varint(p_.bundles.size());
    for (const isa::Bundle& bundle : p_.bundles) {
      std::array<int, isa::kNumSlots> used{};
      uint32_t mask = 0;
      for (const isa::PlacedInstruction& placed : bundle.insns) {
        const int kind = static_cast<int>(isa::info(placed.insn.op).slot);
        mask |= uint32_t{1} << (bases[kind] + used[kind]++);
      }
      w.fixed(mask);
      for (const isa::PlacedInstruction& placed : bundle.insns) {
        auto word = isa::encode(placed.insn);
        if (!word) return word.takeError();
        w.fixed(*word);
      }
    }
    section(SectionTag::kCode, w);
    return llvm::Error::success();
  }

  // Locations and op slots of the instructions in order, as differences.
  void lines() {
    ByteWriter w;
    w.varint(p_.locs.size());
    for (const std::string& loc : p_.locs) w.text(loc);
    uint32_t loc = 0, op = 0;
    for (const isa::Bundle& bundle : p_.bundles)
      for (const isa::PlacedInstruction& placed : bundle.insns) {
        w.signedVarint(int64_t{placed.loc} - loc), loc = placed.loc;
        w.signedVarint(int64_t{placed.op} - op), op = placed.op;
      }
    section(SectionTag::kLines, w);
  }

  void symbols() {
    ByteWriter w;
    w.varint(p_.label_at.size());
    for (const auto& [bundle, name] : p_.label_at) w.varint(bundle), w.text(name);
    w.varint(p_.ranges.size());
    for (const isa::CodeRange& range : p_.ranges)
      w.text(range.name), w.varint(range.begin), w.varint(range.end);
    section(SectionTag::kSymbols, w);
  }

  void memory() {
    ByteWriter w;
    w.varint(p_.constants.size());
    for (const isa::Constant& c : p_.constants) {
      w.fixed(static_cast<uint8_t>(c.space));
      w.signedVarint(c.address);
      w.varint(c.bytes.size());
      w.raw(c.bytes.data(), c.bytes.size());
    }
    w.varint(p_.buffers.size());
    for (const isa::PlacedBuffer& b : p_.buffers) {
      w.text(b.name);
      w.fixed(static_cast<uint8_t>(b.space));
      for (int64_t v : {b.address, b.bytes, b.real_bytes}) w.signedVarint(v);
      w.text(b.loc);
    }
    section(SectionTag::kMemory, w);
  }

  static void port(ByteWriter& w, const isa::SignaturePort& port) {
    w.text(port.name);
    w.text(elementTypeName(port.element));
    w.varint(port.global_dims.size());
    for (int64_t d : port.global_dims) w.signedVarint(d);
    for (int64_t d : port.local_dims) w.signedVarint(d);
    w.varint(port.shards.size());
    for (const auto& factors : port.shards) {
      w.varint(factors.size());
      for (const isa::ShardFactor& f : factors) w.signedVarint(f.stride), w.signedVarint(f.size);
    }
    w.fixed<uint8_t>(port.layout.dense);
    w.signedVarint(port.layout.tile_rows);
    w.signedVarint(port.layout.packing);
    w.fixed(static_cast<uint8_t>(port.space));
    w.signedVarint(port.address);
    w.signedVarint(port.alias);
    w.text(port.loc);
  }
  void signature() {
    ByteWriter w;
    for (const auto* ports : {&p_.args, &p_.results}) {
      w.varint(ports->size());
      for (const isa::SignaturePort& one : *ports) port(w, one);
    }
    section(SectionTag::kSignature, w);
  }

  void devices() {
    ByteWriter w;
    w.varint(p_.device_order.size());
    for (int64_t position : p_.device_order) w.signedVarint(position);
    w.signedVarint(p_.device_table_words);
    for (uint32_t word : p_.device_table) w.fixed(word);
    section(SectionTag::kDevices, w);
  }

  std::string finish() {
    const std::string& body = payload_.str();
    ByteWriter w;
    w.raw(kObjectMagic, sizeof kObjectMagic);
    w.fixed(kObjectVersion);
    w.fixed<uint64_t>(body.size());
    w.fixed<uint64_t>(llvm::xxh3_64bits(llvm::StringRef(body)));
    w.raw(body.data(), body.size());
    return std::move(w.str());
  }

  const isa::Program& p_;
  ByteWriter payload_;
};

}  // namespace

SlotBases slotBases(const target::Chip& chip) {
  SlotBases bases{};
  for (int i = 0; i < isa::kNumSlots; ++i) bases[i + 1] = bases[i] + chip.slots[i];
  return bases;
}

llvm::Expected<std::string> writeObject(const isa::Program& program) {
  auto chip = target::parseChip(program.chip_json, "chip description");
  if (!chip) return chip.takeError();
  if (llvm::Error error = checkProgram(program, *chip)) return error;
  return Writer(program).run(*chip);
}

}  // namespace tpu::assembly
