// What a directive's handler sees.
#pragma once
#include "directives.h"
#include "line_cursor.h"

namespace tpu::assembly {

struct Directives::Context {
  const LineCursor& cursor;
  std::vector<Argument> args;
  size_t at;  // offset of the directive
};

}  // namespace tpu::assembly
