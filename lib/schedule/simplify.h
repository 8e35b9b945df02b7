// Constants and addresses of scalar code, before scheduling: constants move into immediates and addresses,
// copies and unused values go away.
#pragma once
#include "mir.h"

namespace tpu::schedule {

void simplify(Func& func);

}  // namespace tpu::schedule
