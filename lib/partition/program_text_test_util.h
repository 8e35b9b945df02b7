// Small programs as text, run on stated inputs, and what a partitioned program holds.
#pragma once
#include <string>
#include <vector>

#include "equality_test_util.h"
#include "tpu/hlo/analysis.h"
#include "tpu/support/host_tensor.h"

namespace tpu::partition {

/// A module of one function over @mesh.
std::string program(const std::string& mesh, const std::string& args, const std::string& results,
                    const std::string& body);
/// {sdy.sharding = #sdy.sharding<@mesh, [dims]>}
std::string sharded(const std::string& dims);

/// Elements of the largest value that a device holds, literals and iotas aside.
int64_t largestValue(const hlo::Module& m);
size_t count(const hlo::Module& m, hlo::Opcode opcode);

/// Results as numbers, and the partitioned program with what was said about it.
struct KnownRun {
  std::vector<std::vector<double>> whole, parts;
  hlo::Module partitioned;
  Collected sink;
  std::string report;  // JSON lines of --explain
};
/// Runs a program whole and partitioned on inputs given as numbers; replicas must agree.
KnownRun runKnown(const std::string& text, const std::vector<std::vector<double>>& inputs);

/// 0, 1, 2 ... n - 1.
std::vector<double> counting(int64_t n, double from = 0, double step = 1);

}  // namespace tpu::partition
