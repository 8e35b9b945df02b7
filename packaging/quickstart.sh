#!/bin/bash
# From a clone on Debian 12 to a JAX program that runs on four emulated TPU chips: installs what is missing, builds the
# five tools, takes a two-layer MLP through all of them, and says where the time went.
set -euo pipefail
cd "$(dirname "$0")/.."
start=$SECONDS
phase() { printf '\n== %s  [%d s]\n' "$1" "$((SECONDS - start))"; }
show() { printf '$ %s\n' "$*"; "$@"; }

phase "1/5 packages"
packaging/install-packages.sh

phase "2/5 build the five tools (a few minutes)"
mkdir -p build
cmake --preset release >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
cmake --build --preset release --target tpu-partition tpu-lower tpu-schedule tpu-asm tpu-run
export PATH="$PWD/build/bin:$PATH"

case=testdata/cases/mlp_megatron
out=build/quickstart
mkdir -p "$out"
phase "3/5 compile $case/program.mlir for four v5e chips"
show tpu-partition "$case/program.mlir" --mesh=data=2,model=2 --target=v5e:2x2 -o "$out/1.spmd.json"
show tpu-lower "$out/1.spmd.json" --precision=highest -o "$out/2.llo.json"
show tpu-schedule "$out/2.llo.json" -o "$out/3.bundles.json"
show tpu-asm "$out/3.bundles.json" -o "$out/4.tpuobj"

phase "4/5 run it on four emulated chips and compare with what JAX computed"
show tpu-run "$out/4.tpuobj" --strict --input=0=@$case/in0.npy --input=1=@$case/in1.npy --input=2=@$case/in2.npy \
  --expect=0=@$case/out0.npy --report="$out/run.jsonl"

phase "5/5 where the time went"
jq -r 'def percent: if . == null then "unknown" else "\(. * 1000 | round / 10) %" end;
  select(.type == "run") |
  "\(.devices) devices, \(.cycles) cycles = \(.time_ns) ns, efficiency \(.efficiency | percent)",
  "required by the program (ns): \(.required_floor_ns | to_entries | map("\(.key) \(.value | round)") | join(", "))",
  "busy: MXU \(.mxu_utilization | percent), HBM \(.hbm_utilization | percent), links \(.ici_utilization | percent)"' "$out/run.jsonl"

echo "A program this small waits for latencies: kernels start, transfers arrive, one after the other."

cat <<'END'

Right on all four chips. What to try next:
  export PATH=$PWD/build/bin:$PATH
  tpu-partition testdata/cases/mlp_megatron/program.mlir --explain     # why each collective is there
  tpu-lower build/quickstart/1.spmd.json --emit=text | less            # the loops of machine operations
  tpu-asm -d build/quickstart/4.tpuobj | less                          # every bundle of every chip
  tpu-run build/quickstart/4.tpuobj --inputs=seed:7 --trace=trace.json # open it at ui.perfetto.dev
  make -f packaging/examples/Makefile                                  # all stages and some sweeps by make
  tpu-partition --help                                                 # every tool has one screen of help
END
