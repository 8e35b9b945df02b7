// What each stage makes of each operation, as documentation, from the tables that the stages work by.
#pragma once
#include <string>

namespace tpu::lower {

enum class OpTableForm { kJson, kMan };
/// kMan: the page tpu-ops(7). kJson: a row per operation.
std::string describeOps(OpTableForm form);

}  // namespace tpu::lower
