// Partitioned programs against what they came from: both run on the evaluator with the same random inputs.
#pragma once
#include <string>

#include "tpu/hlo/module.h"
#include "tpu/partition/partition.h"
#include "tpu/support/diagnostics.h"

namespace tpu::partition {

/// Collects what is reported.
struct Collected : DiagnosticSink {
  std::vector<Diagnostic> all;
  void report(const Diagnostic& d) override { all.push_back(d); }
  bool has(Code code) const {
    for (const Diagnostic& d : all) {
      if (d.code == code) return true;
    }
    return false;
  }
};

std::string errorText(llvm::Error error);

struct Comparison {
  std::string problem;  // empty: equal
  int64_t wire_bytes = 0;
  size_t collectives = 0;
  hlo::Module partitioned;
};

/// Partitions a copy of `whole` and runs both on inputs from `seed`.
Comparison compareModules(const hlo::Module& whole, const PartitionOptions& options, uint64_t seed,
                          double rtol);

/// Runs both on inputs from `seed`; empty where they agree.
std::string compareRuns(const hlo::Module& whole, const hlo::Module& partitioned, uint64_t seed, double rtol);

/// Reads `text`, partitions it, runs both on inputs from `seed`. Integers must agree bit for bit, floats
/// within `rtol` of the largest magnitude; replicas must agree.
Comparison compareText(llvm::StringRef text, llvm::StringRef name, const PartitionOptions& options,
                       uint64_t seed, double rtol = 1e-4);

}  // namespace tpu::partition
