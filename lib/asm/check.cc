// Checks of a program against its chip, bundle by bundle, then table by table.
#include "tpu/asm/check.h"

#include <algorithm>

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace tpu::assembly {
namespace {

using isa::Instruction;
using isa::Opcode;
using isa::Operand;
using isa::OperandKind;
using isa::RegClass;

constexpr int kNumOpcodes = static_cast<int>(Opcode::kCount);

// What the chip lacks for an opcode, or null.
const char* missingFor(const target::Chip& chip, Opcode op) {
  const llvm::StringRef mnemonic = isa::info(op).mnemonic;
  switch (op) {
    case Opcode::vpop_mrf:
      return chip.mxu_addressed || chip.mxu_side < 128
                 ? "needs matrix units of side 128 or 256 with result FIFOs"
                 : nullptr;
    case Opcode::vpop_mrf_half:
      return chip.mxu_addressed || chip.mxu_side != 64 ? "needs matrix units of side 64 with result FIFOs"
                                                       : nullptr;
    case Opcode::vpop_mrb:
      return chip.mxu_addressed ? nullptr : "needs addressed accumulators";
    default:
      break;
  }
  if (!isa::mxuRows(op)) return nullptr;
  const llvm::StringRef type = mnemonic.rsplit('.').second;
  if (!llvm::is_contained(chip.mxu_types, type))
    return "has an operand type that this chip's matrix units do not take";
  if (mnemonic.starts_with("vmatmul.acc."))
    return chip.mxu_addressed ? nullptr : "needs addressed accumulators";
  return mnemonic.starts_with("vmatmul.") && chip.mxu_addressed
             ? "needs result FIFOs; this chip has addressed accumulators"
             : nullptr;
}

class BundleChecker {
 public:
  BundleChecker(const isa::Program& program, const target::Chip& chip, InstructionLoc locOf)
      : program_(program), chip_(chip), locOf_(locOf), missing_(kNumOpcodes) {
    for (int i = 0; i < kNumOpcodes; ++i) missing_[i] = missingFor(chip, static_cast<Opcode>(i));
    limits_ = {chip.scalar_regs, chip.vector_regs, chip.mask_regs, chip.predicate_regs};
  }

  llvm::Error run() {
    for (at_ = 0; at_ < program_.bundles.size(); ++at_)
      if (llvm::Error error = checkBundle(program_.bundles[at_])) return error;
    return llvm::Error::success();
  }

 private:
  llvm::Error bad(Code code, int insn, const llvm::Twine& text) const {
    return fail(code, locOf_(at_, insn), text);
  }
  const Instruction& insn(int i) const { return program_.bundles[at_].insns[i].insn; }

  llvm::Error checkBundle(const isa::Bundle& bundle) {
    std::array<int, isa::kNumSlots> used{};
    int last_slot = 0;
    for (int i = 0; i < static_cast<int>(bundle.insns.size()); ++i) {
      const isa::PlacedInstruction& placed = bundle.insns[i];
      const int slot = static_cast<int>(isa::info(placed.insn.op).slot);
      if (++used[slot] > chip_.slots[slot])
        return bad(Code::kTooManyInSlot, i,
                   "'" + isa::print(placed.insn) + "' is one too many: a bundle of " + chip_.name + " has " +
                       llvm::Twine(chip_.slots[slot]) + " '" + isa::slotName(static_cast<isa::Slot>(slot)) +
                       "' slot" + (chip_.slots[slot] == 1 ? "" : "s"));
      if (slot < last_slot)
        return bad(Code::kBadProgramTable, i, "instructions of a bundle are not in the order of slots");
      last_slot = slot;
      if (placed.loc >= std::max<size_t>(program_.locs.size(), 1))
        return bad(Code::kBadProgramTable, i, "location row " + llvm::Twine(placed.loc) + " does not exist");
      if (llvm::Error error = checkInstruction(i)) return error;
    }
    return checkWrites(bundle);
  }

  llvm::Error checkInstruction(int i) const {
    const Instruction& x = insn(i);
    if (const char* why = missing_[static_cast<int>(x.op)])
      return bad(Code::kNotOnThisChip, i, "'" + isa::print(x) + "' " + why);
    auto word = isa::encode(x);
    if (!word) {
      const Diagnostic d = takeDiagnostics(word.takeError())[0];
      return bad(d.code, i, d.text);
    }
    llvm::Error error = llvm::Error::success();
    isa::forEachRegister(x, [&](RegClass cls, int reg, bool, bool, bool write) {
      const int limit = limits_[static_cast<int>(cls)];
      if (error || reg < limit || (cls == RegClass::kPred && reg == isa::kAlways && !write)) return;
      error =
          bad(Code::kNoSuchRegister, i,
              "'" + isa::print(x) + "': " + chip_.name + " has no register " + "svmp"[static_cast<int>(cls)] +
                  llvm::Twine(reg) + "; the last is " + llvm::Twine(limit - 1));
    });
    if (error) return error;
    for (int k = 0; k < x.num_operands; ++k)
      if (llvm::Error e = checkOperand(i, isa::info(x.op).operands[k], x.operands[k])) return e;
    return checkShape(i, x);
  }

  llvm::Error checkOperand(int i, OperandKind kind, const Operand& o) const {
    if (kind == OperandKind::Label && o.imm >= static_cast<int64_t>(program_.bundles.size()))
      return bad(Code::kBadLabel, i,
                 "branch to bundle " + llvm::Twine(o.imm) + " of " + llvm::Twine(program_.bundles.size()));
    if (kind != OperandKind::Mxu && kind != OperandKind::Xlu) return llvm::Error::success();
    const int units = kind == OperandKind::Mxu ? chip_.mxus : chip_.xlus;
    if (o.reg < units) return llvm::Error::success();
    return bad(Code::kNoSuchRegister, i,
               "'" + isa::print(insn(i)) + "': " + chip_.name + " has " + llvm::Twine(units) +
                   (kind == OperandKind::Mxu ? " matrix" : " cross-lane") + " units");
  }

  // Immediates whose range depends on the chip.
  llvm::Error checkShape(int i, const Instruction& x) const {
    auto refuse = [&](const llvm::Twine& why) {
      return bad(Code::kNotOnThisChip, i, "'" + isa::print(x) + "': " + why);
    };
    const Operand* o = x.operands.data();
    const int parts = chip_.mxu_side == 128 ? 1 : 2;  // lane panels or halves
    if (const int rows = isa::mxuRows(x.op)) {
      const bool push = isa::info(x.op).latency == isa::LatencyClass::kMatPush ||
                        isa::info(x.op).latency == isa::LatencyClass::kMatPushT;
      if (o[push ? 4 : 2].imm >= parts)
        return refuse("a side of " + llvm::Twine(chip_.mxu_side) + " has " +
                      (parts == 1 ? "one lane panel" : "two lane parts"));
      if (push && o[3].imm >= chip_.mxu_side / rows)
        return refuse("a side of " + llvm::Twine(chip_.mxu_side) + " has " +
                      llvm::Twine(chip_.mxu_side / rows) + " row groups of this type");
    }
    if (x.op == Opcode::vxpose_go) {
      if (o[2].imm % 8 || o[2].imm == 0 || o[1].imm + o[2].imm > 128)
        return refuse("the width is a multiple of 8, and columns end at 128");
      if (o[2].imm / 8 > chip_.trf_depth)
        return refuse("yields " + llvm::Twine(o[2].imm / 8) + " entries; the transpose FIFO holds " +
                      llvm::Twine(chip_.trf_depth));
    }
    if (isa::info(x.op).latency == isa::LatencyClass::kSemaphore) {
      for (int k = 0; k < x.num_operands; ++k)
        if (isa::info(x.op).operands[k] == OperandKind::S16 && o[k].kind == Operand::kImm &&
            o[k].imm >= chip_.semaphores)
          return bad(Code::kNoSuchRegister, i,
                     "'" + isa::print(x) + "': " + chip_.name + " has " + llvm::Twine(chip_.semaphores) +
                         " semaphores");
    }
    if (x.op == Opcode::vpop_mrb && o[2].kind == Operand::kImm && o[2].imm >= chip_.mrb_entries)
      return refuse("the accumulator has " + llvm::Twine(chip_.mrb_entries) + " entries");
    return llvm::Error::success();
  }

  struct Write {
    RegClass cls;
    int reg, pred;
    bool neg;
  };

  llvm::Error checkWrites(const isa::Bundle& bundle) const {
    llvm::SmallVector<Write, 16> writes;
    for (int i = 0; i < static_cast<int>(bundle.insns.size()); ++i) {
      const Instruction& x = bundle.insns[i].insn;
      bool twice = false;
      isa::forEachRegister(x, [&](RegClass cls, int reg, bool, bool, bool write) {
        if (!write) return;
        for (const Write& w : writes)
          twice |= w.cls == cls && w.reg == reg &&
                   !(w.pred == x.pred && w.neg != x.pred_neg && x.pred != isa::kAlways);
        writes.push_back({cls, reg, x.pred, x.pred_neg});
      });
      if (twice)
        return bad(Code::kDoubleWrite, i,
                   "'" + isa::print(x) + "' writes a register that another instruction of the bundle writes");
    }
    return llvm::Error::success();
  }

  const isa::Program& program_;
  const target::Chip& chip_;
  InstructionLoc locOf_;
  std::vector<const char*> missing_;
  std::array<int, 4> limits_;
  uint32_t at_ = 0;
};

llvm::Error badTable(const llvm::Twine& text) { return fail(Code::kBadProgramTable, "", text); }

llvm::Error checkLabels(const isa::Program& program) {
  llvm::StringSet<> seen;
  uint32_t last = 0;
  for (const auto& [bundle, name] : program.label_at) {
    if (!isLabelName(name)) return fail(Code::kBadLabel, "", "'" + name + "' is not a label name");
    if (!seen.insert(name).second) return fail(Code::kBadLabel, "", "label '" + name + "' is defined twice");
    if (bundle >= program.bundles.size() || bundle < last)
      return fail(Code::kBadLabel, "", "label '" + name + "' is out of order or range");
    last = bundle;
  }
  return llvm::Error::success();
}

llvm::Error checkRanges(const isa::Program& program) {
  uint32_t last = 0;
  for (const isa::CodeRange& range : program.ranges) {
    if (range.begin < last || range.end < range.begin || range.end > program.bundles.size())
      return badTable("code range '" + range.name + "' is out of order or beyond the bundles");
    last = range.end;
  }
  return llvm::Error::success();
}

llvm::Error checkPort(const isa::Program& program, const isa::SignaturePort& port, const char* what) {
  auto bad = [&](const llvm::Twine& why) {
    return badTable(llvm::Twine(what) + " '" + port.name + "': " + why);
  };
  const size_t rank = port.global_dims.size();
  if (port.local_dims.size() != rank || (!port.shards.empty() && port.shards.size() != rank))
    return bad("global, local and sharded ranks differ");
  if (port.address < 0) return bad("negative address");
  for (size_t d = 0; d < rank; ++d) {
    int64_t shards = 1;
    if (!port.shards.empty())
      for (const isa::ShardFactor& f : port.shards[d]) {
        if (f.size < 1 || f.stride < 1 || f.size > program.devices || f.stride > program.devices)
          return bad("a shard factor is out of range");
        shards *= f.size;
        if (shards > program.devices) return bad("more shards than devices");
      }
    if (port.global_dims[d] < 0 || port.global_dims[d] > INT64_MAX - shards ||
        port.local_dims[d] != (port.global_dims[d] + shards - 1) / shards)
      return bad("local size of dimension " + llvm::Twine(d) + " is not the global size over its shards");
  }
  const int packing = isa::packingOf(port.element);
  if (port.layout.dense && (packing != 1 || port.layout != isa::Layout{true, 8, 1}))
    return bad("only arrays of 32-bit elements may be dense");
  if (!port.layout.dense &&
      (port.layout.packing != packing || port.layout.tile_rows < packing || port.layout.tile_rows % packing))
    return bad("the layout does not suit the element type");
  int64_t bytes = 4;
  for (int64_t d : port.local_dims)
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(d, 1), &bytes) || bytes > (int64_t{1} << 50))
      return bad("the array is larger than any memory");
  return llvm::Error::success();
}

llvm::Error checkSignature(const isa::Program& program) {
  for (const isa::SignaturePort& port : program.args) {
    if (elementBits(port.element) > 32)
      return badTable("argument '" + port.name + "' has a 64-bit element type");
    if (llvm::Error error = checkPort(program, port, "argument")) return error;
    if (port.alias < -1 || port.alias >= static_cast<int>(program.results.size()))
      return badTable("argument '" + port.name + "' aliases no result");
  }
  for (const isa::SignaturePort& port : program.results) {
    if (elementBits(port.element) > 32)
      return badTable("result '" + port.name + "' has a 64-bit element type");
    if (llvm::Error error = checkPort(program, port, "result")) return error;
  }
  return llvm::Error::success();
}

llvm::Error checkDevices(const isa::Program& program, const target::Chip& chip) {
  auto count = static_cast<uint64_t>(program.devices);
  if (program.devices < 1 || program.devices > (1 << 24))
    return badTable("the number of devices is " + llvm::Twine(program.devices));
  if (!program.device_order.empty() && program.device_order.size() != count)
    return badTable("the device order does not name every device");
  auto target = target::targetOfChip(program.target, chip);
  if (!target) return target.takeError();
  if (program.devices > target->numDevices())
    return badTable(llvm::Twine(count) + " devices on a target of " + llvm::Twine(target->numDevices()));
  std::vector<int64_t> order = program.device_order;
  llvm::sort(order);
  if (std::adjacent_find(order.begin(), order.end()) != order.end() ||
      (!order.empty() && (order.front() < 0 || order.back() >= target->numDevices())))
    return badTable("the device order names a position twice, or one that the target does not have");
  if (program.device_table_words < 0 || program.device_table_words > (1 << 20) ||
      program.device_table.size() != count * static_cast<uint64_t>(program.device_table_words))
    return badTable("the device table does not have " + llvm::Twine(program.device_table_words) +
                    " words for each of " + llvm::Twine(count) + " devices");
  return llvm::Error::success();
}

llvm::Error checkTables(const isa::Program& program, const target::Chip& chip) {
  if (program.locs.empty() || !program.locs[0].empty())
    return badTable("row 0 of the locations is not the empty one");
  for (const isa::Constant& c : program.constants)
    if (c.address < 0) return badTable("a constant has a negative address");
  if (llvm::Error error = checkLabels(program)) return error;
  if (llvm::Error error = checkRanges(program)) return error;
  if (llvm::Error error = checkDevices(program, chip)) return error;
  return checkSignature(program);
}

}  // namespace

bool isLabelName(llvm::StringRef name) {
  return !name.empty() && !llvm::isDigit(name[0]) && !name.starts_with(".L") &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$'; });
}

void orderBySlot(isa::Bundle& bundle) {
  std::stable_sort(bundle.insns.begin(), bundle.insns.end(),
                   [](const isa::PlacedInstruction& a, const isa::PlacedInstruction& b) {
                     return isa::info(a.insn.op).slot < isa::info(b.insn.op).slot;
                   });
}

llvm::Error checkProgram(const isa::Program& program, const target::Chip& chip, InstructionLoc locOf) {
  if (llvm::Error error = BundleChecker(program, chip, locOf).run()) return error;
  return checkTables(program, chip);
}

llvm::Error checkProgram(const isa::Program& program, const target::Chip& chip) {
  return checkProgram(program, chip, [&](uint32_t bundle, int insn) {
    if (insn >= 0) {
      const uint32_t loc = program.bundles[bundle].insns[insn].loc;
      if (loc && loc < program.locs.size()) return program.locs[loc];
    }
    return "bundle " + std::to_string(bundle);
  });
}

}  // namespace tpu::assembly
