// What an op does, as bytes to compare: ops of equal keys do the same to equal operands.
#pragma once
#include <string>

#include "tpu/hlo/module.h"

namespace tpu::partition {

struct OpKey {
  std::string text;
  void put(int64_t v);
  void put(llvm::StringRef s);
  /// Opcode, attributes, and the reducers of its regions (which must have one; see sharding::reducerOf).
  void put(const hlo::Module& m, hlo::OpId op);

 private:
  void put(const hlo::Module& m, const hlo::Attr& a);
};

}  // namespace tpu::partition
