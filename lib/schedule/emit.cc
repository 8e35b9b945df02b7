#include "emit.h"

#include <algorithm>
#include <set>

#include "llvm/ADT/StringExtras.h"
#include "place.h"
#include "tpu/isa/dma.h"

namespace tpu::schedule {
namespace {

/// A name that may stand as a label in assembly text; `taken` keeps them apart.
std::string labelName(llvm::StringRef name, std::set<std::string>& taken) {
  std::string base = llvm::isAlpha(name.empty() ? '0' : name[0]) ? "" : "_";
  for (char c : name) base += llvm::isAlnum(c) || c == '.' ? c : '_';
  std::string label = base;
  for (int n = 1; !taken.insert(label).second; ++n) label = base + "_" + std::to_string(n);
  return label;
}

void emitCode(const Context& ctx, std::vector<Scheduled>& functions, isa::Program& program) {
  std::vector<std::vector<uint32_t>> start(functions.size());
  uint32_t at = 0;
  for (size_t f = 0; f < functions.size(); ++f)
    for (const Bundles& b : functions[f].blocks) {
      start[f].push_back(at);
      at += static_cast<uint32_t>(b.size());
    }
  std::vector<std::pair<uint32_t, std::string>> labels;
  std::set<std::string> taken;
  for (size_t f = 0; f < functions.size(); ++f) {
    const Func& func = functions[f].func;
    const uint32_t begin = static_cast<uint32_t>(program.bundles.size());
    std::vector<std::set<int32_t>> entered(func.blocks.size());  // by branches, so many bundles in
    for (const Bundles& block : functions[f].blocks)
      for (const auto& from : block) {
        isa::Bundle bundle;
        for (const Insn& i : from) {
          isa::PlacedInstruction p;
          p.insn = i.insn;
          p.op = i.op;
          p.loc = i.op < func.op_locs.size() ? func.op_locs[i.op] : 0;
          for (isa::Operand& o : p.insn.operands) {
            if (o.kind != isa::Operand::kLabel) continue;
            if (i.insn.op == isa::Opcode::br) entered[o.imm].insert(i.skip);
            o.imm = i.insn.op == isa::Opcode::call ? start[o.imm][0] : start[f][o.imm] + i.skip;
          }
          bundle.insns.push_back(std::move(p));
        }
        std::stable_sort(bundle.insns.begin(), bundle.insns.end(), [](const auto& a, const auto& b) {
          return isa::info(a.insn.op).slot < isa::info(b.insn.op).slot;
        });
        program.bundles.push_back(std::move(bundle));
      }
    program.ranges.push_back({func.name, begin, static_cast<uint32_t>(program.bundles.size())});
    labels.push_back({begin, labelName(func.name, taken)});
    for (size_t b = 0; b < entered.size(); ++b)
      for (int32_t skip : entered[b]) {
        const std::string more = skip > 0 ? "." + std::to_string(skip) : "";
        if (start[f][b] + skip != begin)
          labels.push_back(
              {start[f][b] + skip, labelName(func.name + ".b" + std::to_string(b) + more, taken)});
      }
  }
  std::stable_sort(labels.begin(), labels.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& l : labels)
    if (program.label_at.empty() || program.label_at.back().first != l.first)
      program.label_at.push_back(std::move(l));
}

void emitBuffers(const Context& ctx, isa::Program& program) {
  const llo::Module& m = ctx.module;
  const std::vector<LiveRange> ranges = bufferRanges(m);
  for (size_t b = 0; b < m.buffers.size(); ++b) {
    const llo::Buffer& buffer = m.buffers[b];
    if (buffer.space == isa::Space::kHbm && ranges[storageOf(m, static_cast<int32_t>(b))].begin < 0) continue;
    program.buffers.push_back(
        {buffer.name, buffer.space, ctx.address[b], buffer.bytes, buffer.real_bytes, ctx.locOf(buffer.loc)});
    if (buffer.role == llo::Role::kConstant && !buffer.data.empty())
      program.constants.push_back({buffer.space, ctx.address[b], buffer.data});
  }
}

}  // namespace

isa::Program emitProgram(Context& ctx, std::vector<Scheduled>& functions) {
  const llo::Module& m = ctx.module;
  isa::Program program;
  program.chip_json = m.chip_json;
  program.target = m.target;
  program.devices = m.devices;
  program.device_order = m.device_order;
  program.locs = m.locs;
  if (program.locs.empty()) program.locs.push_back("");
  emitCode(ctx, functions, program);
  emitBuffers(ctx, program);
  for (isa::Constant& c : ctx.constants) program.constants.push_back(std::move(c));
  auto port = [&](const llo::Port& p) {
    isa::SignaturePort s = p.signature;
    s.address = ctx.address[p.buffer];
    s.space = m.buffers[p.buffer].space;
    return s;
  };
  for (const llo::Port& p : m.args) program.args.push_back(port(p));
  for (const llo::Port& p : m.results) program.results.push_back(port(p));
  program.device_table_words = m.device_table_words;
  program.device_table = m.device_table;
  program.hbm_bytes = ctx.hbm_end;
  program.vmem_bytes = ctx.vmem_end;
  program.smem_bytes = ctx.smem_end;
  program.required_flops_bf16 = m.required_flops;
  program.required_hbm_bytes = m.required_hbm_bytes;
  program.required_ici_bytes = m.required_ici_bytes;
  program.options = m.options;
  return program;
}

}  // namespace tpu::schedule
