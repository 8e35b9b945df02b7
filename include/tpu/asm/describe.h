// The instruction set as documentation, from the tables.
#pragma once
#include <string>

namespace tpu::assembly {

enum class DescribeForm { kJson, kMan, kMarkdown };
/// kMan: the page tpu-isa(7). kMarkdown: the tables. kJson: a row per instruction, with its encoding.
std::string describeInstructions(DescribeForm form);

}  // namespace tpu::assembly
