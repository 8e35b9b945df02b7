// The helpers of programs_test.cc and known_results_test.cc.
#include "program_text_test_util.h"

#include <gtest/gtest.h>

#include "tpu/eval/evaluate.h"
#include "tpu/frontend/frontend.h"
#include "tpu/hlo/literal.h"
#include "tpu/partition/tool.h"

namespace tpu::partition {

std::string program(const std::string& mesh, const std::string& args, const std::string& results,
                    const std::string& body) {
  return "module @m {\n  sdy.mesh @mesh = <[" + mesh + "]>\n  func.func public @main(" + args + ") -> (" + results +
         ") {\n" + body + "  }\n}\n";
}

std::string sharded(const std::string& dims) {
  return "{sdy.sharding = #sdy.sharding<@mesh, [" + dims + "]>}";
}

int64_t largestValue(const hlo::Module& m) {
  int64_t largest = 0;
  hlo::walk(m, [&](hlo::OpId id) {
    if (m.op(id).opcode == hlo::Opcode::constant || m.op(id).opcode == hlo::Opcode::iota) return;
    for (hlo::ValueId v : m.op(id).results) largest = std::max(largest, m.typeOf(v).numElements());
  });
  return largest;
}

size_t count(const hlo::Module& m, hlo::Opcode opcode) {
  size_t n = 0;
  hlo::walk(m, [&](hlo::OpId id) { n += m.op(id).opcode == opcode; });
  return n;
}

std::vector<double> counting(int64_t n, double from, double step) {
  std::vector<double> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(from + static_cast<double>(i) * step);
  return out;
}

namespace {

std::vector<std::vector<double>> numbers(const std::vector<HostTensor>& tensors) {
  std::vector<std::vector<double>> out;
  for (const HostTensor& t : tensors) {
    out.emplace_back();
    for (int64_t i = 0; i < t.numElements(); ++i)
      out.back().push_back(hlo::loadDouble(t.element, t.bytes.data() + i * hostBytes(t.element)));
  }
  return out;
}

}  // namespace

KnownRun runKnown(const std::string& text, const std::vector<std::vector<double>>& inputs) {
  KnownRun out;
  auto whole = frontend::readProgram(text, "test.mlir", out.sink);
  if (!whole) {
    ADD_FAILURE() << errorText(whole.takeError()) << text;
    return out;
  }
  std::vector<HostTensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const hlo::Type& type = eval::argumentType(*whole, i);
    HostTensor t(type.element, type.dims);
    for (int64_t k = 0; k < t.numElements(); ++k) {
      double v = inputs[i][inputs[i].size() == 1 ? 0 : k];
      uint8_t* at = t.bytes.data() + k * hostBytes(type.element);
      isFloat(type.element) ? hlo::storeDouble(type.element, v, at)
                            : hlo::storeInt(type.element, static_cast<int64_t>(v), at);
    }
    tensors.push_back(std::move(t));
  }
  PartitionRun run;
  run.input_bytes = text;
  run.input_name = "test.mlir";
  run.check = true;
  Partitioner p(std::move(run), out.sink);
  if (llvm::Error e = p.run()) {
    ADD_FAILURE() << errorText(std::move(e)) << text;
    return out;
  }
  out.partitioned = p.module().clone();
  llvm::raw_string_ostream os(out.report);
  p.writeExplanation(os, true);
  for (bool parts : {false, true}) {
    auto got = eval::evaluate(parts ? out.partitioned : *whole, tensors, &out.sink);
    if (!got) {
      ADD_FAILURE() << errorText(got.takeError()) << text;
      return out;
    }
    (parts ? out.parts : out.whole) = numbers(*got);
  }
  EXPECT_FALSE(out.sink.has(Code::kEvalReplicasDiffer)) << text;
  return out;
}

}  // namespace tpu::partition
