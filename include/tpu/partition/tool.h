// tpu-partition as a library: what its main fills in from flags, and the run itself.
#pragma once
#include <memory>

#include "tpu/partition/partition.h"
#include "tpu/pass/pass.h"
#include "tpu/report/report.h"

namespace tpu::partition {

/// The passes of tpu-partition, for --passes and the man page.
std::vector<PassInfo> partitionPasses();

struct PartitionRun {
  std::string input_bytes, input_name;
  PartitionOptions options;
  PassOptions passes;
  bool check = false;
  std::string explain;  // --explain=VALUE; empty: all collectives
  bool find_removals = false;  // try which requests cause collectives, for the explanation
  std::vector<int64_t> device_order;  // --device-order; empty: the mesh's own
};

/// One program on its way through the passes.
class Partitioner {
 public:
  Partitioner(PartitionRun run, DiagnosticSink& sink);
  ~Partitioner();
  /// Reads, runs the passes (all, or as far as asked), checks.
  llvm::Error run();
  const hlo::Module& module() const;
  /// The whole document, or with `only` one table of it; or the view for people.
  llvm::Error write(llvm::raw_ostream& os, llvm::StringRef emit, llvm::StringRef only) const;
  void writeSignature(llvm::raw_ostream& os) const;
  /// Which axis runs over which wires.
  void writeMeshReport(llvm::raw_ostream& os) const;
  // The following hold after a complete run.
  void writeExplanation(llvm::raw_ostream& os, bool json) const;
  std::string summary(size_t warnings) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tpu::partition
