// Every handed case and small programs of all kinds: the partitioned program computes what the whole one
// computes.
#include <cmath>

#include "corpus_test_util.h"
#include "random_program_test_util.h"
#include "report.h"
#include "tpu/eval/evaluate.h"
#include "tpu/hlo/literal.h"

namespace tpu::partition {

std::string errorText(llvm::Error e) {
  std::string out;
  for (const Diagnostic& d : takeDiagnostics(std::move(e))) out += d.loc + ": " + d.text + "\n";
  return out;
}

namespace {

HostTensor randomTensor(const hlo::Type& type, Random& random) {
  HostTensor t(type.element, type.dims);
  int bytes = hostBytes(type.element);
  for (int64_t i = 0; i < t.numElements(); ++i) {
    uint8_t* at = t.bytes.data() + i * bytes;
    uint64_t r = random.next();
    if (isFloat(type.element)) {
      hlo::storeDouble(type.element, static_cast<double>(r % 2001) / 1000.0 - 1.0, at);
    } else if (isComplex(type.element)) {
      hlo::storeComplex(type.element, static_cast<double>(r % 2001) / 1000.0 - 1.0,
                        static_cast<double>((r >> 20) % 2001) / 1000.0 - 1.0, at);
    } else {
      hlo::storeInt(type.element, static_cast<int64_t>(r % 8), at);
    }
  }
  return t;
}

std::string compare(const HostTensor& a, const HostTensor& b, double rtol) {
  if (a.element != b.element || a.dims != b.dims) return "types differ";
  int bytes = hostBytes(a.element);
  bool inexact = isFloat(a.element) || isComplex(a.element);
  if (!inexact) {
    for (int64_t i = 0; i < a.numElements(); ++i) {
      if (std::memcmp(a.bytes.data() + i * bytes, b.bytes.data() + i * bytes, bytes) != 0) {
        return "element " + std::to_string(i) + " is " +
               std::to_string(hlo::loadInt(b.element, b.bytes.data() + i * bytes)) + ", expected " +
               std::to_string(hlo::loadInt(a.element, a.bytes.data() + i * bytes));
      }
    }
    return "";
  }
  double scale = 0;
  auto at = [&](const HostTensor& t, int64_t i, bool imag) {
    const uint8_t* p = t.bytes.data() + i * bytes;
    return imag ? hlo::loadImag(t.element, p) : hlo::loadDouble(t.element, p);
  };
  for (int64_t i = 0; i < a.numElements(); ++i) {
    if (std::isfinite(at(a, i, false))) scale = std::max(scale, std::fabs(at(a, i, false)));
  }
  for (int64_t i = 0; i < a.numElements(); ++i) {
    for (bool imag : {false, true}) {
      if (imag && !isComplex(a.element)) continue;
      double x = at(a, i, imag), y = at(b, i, imag);
      if (x == y || (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= rtol * std::max(scale, 1e-30))
        continue;
      return "element " + std::to_string(i) + " is " + std::to_string(y) + ", expected " + std::to_string(x) +
             " (largest " + std::to_string(scale) + ")";
    }
  }
  return "";
}

}  // namespace

Comparison compareText(llvm::StringRef text, llvm::StringRef name, const PartitionOptions& options,
                       uint64_t seed, double rtol) {
  Collected sink;
  auto whole = frontend::readProgram(text, name, sink);
  if (whole) return compareModules(*whole, options, seed, rtol);
  Comparison out;
  out.problem = "read: " + errorText(whole.takeError());
  return out;
}

Comparison compareModules(const hlo::Module& whole, const PartitionOptions& options, uint64_t seed,
                          double rtol) {
  Comparison out;
  Collected sink;
  out.partitioned = whole.clone();
  if (llvm::Error e = partitionModule(out.partitioned, options, sink)) {
    out.problem = "partition: " + errorText(std::move(e));
    return out;
  }
  auto target = target::parseTarget(out.partitioned.target);
  PartitionReport report = makeReport(out.partitioned, *target, 0);
  out.wire_bytes = report.wire_bytes;
  out.collectives = report.records.size();
  out.problem = compareRuns(whole, out.partitioned, seed, rtol);
  return out;
}

std::string compareRuns(const hlo::Module& whole, const hlo::Module& partitioned, uint64_t seed,
                        double rtol) {
  Collected sink;
  std::string problem;
  Random random{seed};
  std::vector<HostTensor> inputs;
  for (size_t i = 0; i < whole.region(whole.func(whole.entry).body).args.size(); ++i) {
    inputs.push_back(randomTensor(eval::argumentType(whole, i), random));
  }
  auto expect = eval::evaluate(whole, inputs, &sink);
  if (!expect) return "evaluate whole: " + errorText(expect.takeError());
  auto got = eval::evaluate(partitioned, inputs, &sink);
  if (!got) return "evaluate partitioned: " + errorText(got.takeError());
  for (size_t i = 0; i < expect->size(); ++i) {
    std::string why = compare((*expect)[i], (*got)[i], rtol);
    if (!why.empty()) problem += "result " + std::to_string(i) + ": " + why + "\n";
  }
  for (const Diagnostic& d : sink.all) {
    if (d.code == Code::kEvalReplicasDiffer) problem += "replicas: " + d.text + "\n";
  }
  return problem;
}

namespace {

TEST(Equality, HandedCases) {
  if (absent()) GTEST_SKIP();
  std::vector<std::filesystem::path> cases;
  for (const auto& entry : std::filesystem::directory_iterator(jaxCases())) {
    if (std::filesystem::exists(entry.path() / "program.mlir") &&
        std::filesystem::exists(entry.path() / "case.json"))
      cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  const char* only = std::getenv("CASE");
  for (const auto& path : cases) {
    if (only && path.filename() != only) continue;
    auto input = readInput((path / "program.mlir").string());
    ASSERT_TRUE(bool(input));
    Comparison c = compareText(input->bytes, "program.mlir", {}, 7,
                               path.filename().string().find("bf16") != std::string::npos ? 0.05 : 2e-3);
    EXPECT_EQ(c.problem, "") << path.filename();
  }
}

}  // namespace
}  // namespace tpu::partition
