// The compact text view of a program, for people and for golden files (--emit=text). Not read back.
#pragma once
#include "llvm/Support/raw_ostream.h"
#include "tpu/hlo/module.h"

namespace tpu::hlo {

struct PrintOptions {
  bool locations = true;  // "  ; model.py:12:5" behind each op
  bool shardings = true;
};
///   module @jit_f spmd v5e:4x2
///   mesh @mesh x=4 y=2
///   func @main(%a0 "x": f32[8,16] [{x}, {}]) -> (f32[8,4] [{x}, {}])
///     %0 = dot_general %a0, %a1 {lhs_contracting_dimensions=[1], ...} : f32[8,4]  ; ff.py:9:24
///     return %0
void print(const Module& module, llvm::raw_ostream& os, const PrintOptions& options = {});
std::string toText(const Module& module, const PrintOptions& options = {});

/// "{x,y:(1)2,?}p1" per dimension, in brackets; then replicated and unreduced axes. With the mesh's name in
/// front where the module has several.
std::string shardingText(const Module& module, ShardingId sharding);
/// "x" or "x:(1)2".
std::string axisText(const Mesh& mesh, const AxisRef& axis);

}  // namespace tpu::hlo
