// Partitioning of whole programs: they verify, and cost what they should.
#include "tpu/partition/partition.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "passes.h"
#include "report.h"
#include "tpu/frontend/frontend.h"
#include "tpu/hlo/verify.h"
#include "tpu/support/files.h"

namespace tpu::partition {
namespace {

struct Quiet : DiagnosticSink {
  void report(const Diagnostic&) override {}
};

std::string messages(llvm::Error e) {
  std::string out;
  for (const Diagnostic& d : takeDiagnostics(std::move(e))) out += d.loc + ": " + d.text + "\n";
  return out;
}

TEST(Partition, Scratch) {
  const char* only = getenv("CASE");
  if (!only) GTEST_SKIP();
  Quiet sink;
  auto input = readInput(only);
  ASSERT_TRUE(bool(input));
  auto m = frontend::readProgram(input->bytes, input->name, sink);
  if (!m) FAIL() << messages(m.takeError());
  State s;
  s.module = std::move(*m);
  s.ctx.sink = &sink;
  for (const Pass<State>& pass : passList()) {
    if (llvm::Error e = pass.run(s)) FAIL() << pass.name.str() << ": " << messages(std::move(e));
    if (llvm::Error e = hlo::verify(s.module)) FAIL() << "after " << pass.name.str() << ": " << messages(std::move(e));
  }
  PartitionReport r = makeReport(s.module, s.target, s.unpartitioned_ops);
  writeText(s.module, r, llvm::outs());
  llvm::outs() << summaryText(s.module, r, s.target, 0);
  llvm::outs() << "wire " << r.wire_bytes << " flops ratio " << r.dot_flops * r.devices / std::max(1.0, r.dot_flops_unpartitioned) << "\n";
}

}  // namespace
}  // namespace tpu::partition
