// What partitioning costs and why: one record per collective, a summary, and the text forms of both.
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "context.h"
#include "llvm/Support/raw_ostream.h"
#include "tpu/hlo/module.h"
#include "tpu/target/chip.h"

namespace tpu::partition {

/// Floating-point and integer operations of contractions (2 M N K), loops times trips, on the types that the
/// module has: per device after partitioning, of the whole program before (bodies of manual regions count
/// once per device of their axes).
double contractionOps(const hlo::Module& m);

struct CollectiveRecord {
  hlo::OpId op;
  std::string kind;
  int64_t bytes = 0;       // result bytes per device
  int64_t wire_bytes = 0;  // sent per device, mean, all trips
  int64_t trips = 1;
  std::vector<std::string> axes;
  int64_t group_size = 1;
  double time_ns = 0;  // all trips, at sustained link rates, alone on the wires
  const hlo::Why* why = nullptr;
  std::string remove_by;  // found by trying (what_if.h); empty: why's own
  llvm::StringRef removal() const { return !remove_by.empty() || !why ? llvm::StringRef(remove_by) : llvm::StringRef(why->remove_by); }
};

struct PartitionReport {
  std::vector<CollectiveRecord> records;  // most wire bytes first, program order among equals
  std::map<std::string, int64_t> count_by_kind, wire_by_kind;
  int64_t wire_bytes = 0;
  double dot_flops = 0, dot_flops_unpartitioned = 0;
  int64_t devices = 1;
  /// Work per device beyond an even share of the whole program's: what several devices do alike.
  double redundantFlops() const {
    return std::max(0.0, dot_flops - dot_flops_unpartitioned / static_cast<double>(devices));
  }
  int64_t arguments = 0, results = 0;
  int64_t argument_bytes = 0;             // per device
  int64_t replicated_argument_bytes = 0;  // of arguments that every device holds whole
};
PartitionReport makeReport(const hlo::Module& m, const target::Target& target, double unpartitioned_ops);

/// JSON lines: collectives, requests with their verdicts, full copies, then the summary.
void writeJson(const hlo::Module& m, const PartitionReport& report, const Context& ctx, llvm::raw_ostream& os);
/// For people; repeats of one cause are folded.
void writeText(const hlo::Module& m, const PartitionReport& report, const Context& ctx, llvm::raw_ostream& os);
/// The one to three lines on stderr after success.
std::string summaryText(const hlo::Module& m, const PartitionReport& report, const target::Target& target,
                        size_t warnings);
/// Arguments and results: position, name, type, sharding, donation.
void writeSignature(const hlo::Module& m, bool json, llvm::raw_ostream& os);

}  // namespace tpu::partition
