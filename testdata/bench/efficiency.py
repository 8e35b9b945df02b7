#!/usr/bin/env python3
"""Efficiency of machine code on the emulated chips, and speed of the emulation, as a table.

    efficiency.py --bin build/bin [--only WORD] [--markdown]

Each row compiles a generated StableHLO program (or assembles a hand-written kernel) and runs it; required floor and time
come from the run's own report. The last rows are the microbenchmarks of timing parameters, and the emulator's own speed: against
the host's matrix product (numpy over OpenBLAS, one thread) in the same run, and per vector instruction. Exit status 1 where a row misses its goal.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def matmul(m, k, n, t="bf16", out="f32"):
    a, b, c = f"tensor<{m}x{k}x{t}>", f"tensor<{k}x{n}x{t}>", f"tensor<{m}x{n}x{out}>"
    return (f"func.func @main(%a: {a}, %b: {b}) -> {c} {{\n"
            f"  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({a}, {b}) -> {c}\n  return %r : {c}\n}}\n")


def chain():
    t, s = "tensor<8192x8192xf32>", "tensor<f32>"
    return (f"func.func @main(%a: {t}) -> {t} {{\n"
            f"  %b = stablehlo.constant dense<1.25> : {t}\n  %c = stablehlo.constant dense<-0.5> : {t}\n"
            f"  %0 = stablehlo.multiply %a, %b : {t}\n  %1 = stablehlo.add %0, %c : {t}\n"
            f"  %r = stablehlo.exponential %1 : {t}\n  return %r : {t}\n}}\n")


def all_reduce(mib):
    t = f"tensor<{mib * 2048}x128xf32>"
    return ('module @ar attributes {mhlo.num_partitions = 4 : i32} {\n  sdy.mesh @mesh = <["x"=4]>\n'
            f'  func.func @main(%a: {t} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}}) -> ({t} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}}) {{\n'
            f'    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{}}, {{}}]>] out_shardings=[<@mesh, [{{}}, {{}}]>] manual_axes={{"x"}} (%b: {t}) {{\n'
            f'      %1 = "stablehlo.all_reduce"(%b) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}}> ({{\n'
            f'      ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n        %s = stablehlo.add %x, %y : tensor<f32>\n        stablehlo.return %s : tensor<f32>\n'
            f'      }}) : ({t}) -> {t}\n      sdy.return %1 : {t}\n    }} : ({t}) -> {t}\n    return %0 : {t}\n  }}\n}}\n')


# name, program, target, goal as efficiency, or as most microseconds
COMPILED = [
    ("compiled bf16 matmul 2048^3", matmul(2048, 2048, 2048), "v5e:1x1", 0.75),
    ("compiled bf16 matmul 1920^3", matmul(1920, 1920, 1920), "v5e:1x1", 0.60),
    ("compiled bf16 matmul 2056^3", matmul(2056, 2056, 2056), "v5e:1x1", 0.60),
    ("compiled bf16 matmul 2304x1000x2048", matmul(2304, 1000, 2048), "v5e:1x1", 0.60),
    ("compiled f32 exp(a*b+c), 256 MiB in and out", chain(), "v5e:1x1", 0.85),
    ("compiled all-reduce, 64 MiB f32 per device, 2x2", all_reduce(64), "v5e:2x2", 1250.0),
]


# Kernels of testdata/kernels: goal as efficiency
HAND_WRITTEN = {"all_reduce_ring": 0.95, "matmul_all_gather": 0.85, "matmul_bf16": 0.95}


def run(cmd, **kw):
    p = subprocess.run([str(c) for c in cmd], capture_output=True, **kw)
    if p.returncode:
        raise RuntimeError(f"{Path(str(cmd[0])).name} exit {p.returncode}: {p.stderr.decode(errors='replace')[:300]}")
    return p


def execute(bindir, obj, tmp, extra=()):
    run([bindir / "tpu-run", obj, "--inputs=seed:7", f"--report={tmp}/r.jsonl", *extra])
    return json.loads((tmp / "r.jsonl").read_text().splitlines()[0])


def compile_program(bindir, text, target, tmp):
    (tmp / "p.mlir").write_text(text)
    run([bindir / "tpu-partition", tmp / "p.mlir", "--target", target, "-o", tmp / "1.json"])
    run([bindir / "tpu-lower", tmp / "1.json", "-o", tmp / "2.json"])
    run([bindir / "tpu-schedule", tmp / "2.json", "-o", tmp / "3.json"])
    run([bindir / "tpu-asm", tmp / "3.json", "-o", tmp / "4.obj"])
    return tmp / "4.obj"


def row(name, rec, goal):
    floor = max(v for v in rec["required_floor_ns"].values() if v)
    eff = rec["efficiency"]
    ok = eff >= goal if goal <= 1 else rec["time_ns"] <= goal * 1000
    wish = f">= {goal:.2f}" if goal <= 1 else f"<= {goal:.0f} us"
    return [name, f"{floor / 1000:.1f}", f"{rec['time_ns'] / 1000:.1f}", f"{eff:.3f}", wish, "yes" if ok else "NO"]


def hand_written(bindir, assembly, tmp):
    """A kernel written by hand, and the same one in llo: what is scheduled is compared with what was written."""
    run([bindir / "tpu-asm", assembly, "-o", tmp / "h.obj"])
    hand = execute(bindir, tmp / "h.obj", tmp)
    run([bindir / "tpu-schedule", assembly.with_suffix(".llo.json"), "-o", tmp / "s.json"])
    run([bindir / "tpu-asm", tmp / "s.json", "-o", tmp / "s.obj"])
    ours = execute(bindir, tmp / "s.obj", tmp)
    ratio = hand["cycles"] / ours["cycles"]
    return [row("hand-written " + assembly.stem, hand, HAND_WRITTEN[assembly.stem]),
            [f"scheduled {assembly.stem}, hand-written (us), ratio", f"{hand['time_ns'] / 1000:.1f}", f"{ours['time_ns'] / 1000:.1f}",
             f"{ratio:.3f}", ">= 0.95", "yes" if ratio >= 0.95 else "NO"]]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--bin", type=Path, default=Path("build/bin"))
    ap.add_argument("--only", default="")
    ap.add_argument("--markdown", action="store_true")
    a = ap.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as tmp:
        tmp = Path(tmp)
        for f in sorted((ROOT / "testdata/kernels").glob("*.s")):
            if a.only in "hand-written " + f.stem:
                rows += hand_written(a.bin, f, tmp)
        for name, text, target, goal in COMPILED:
            if a.only not in name:
                continue
            try:
                rows.append(row(name, execute(a.bin, compile_program(a.bin, text, target, tmp), tmp), goal))
            except RuntimeError as e:
                rows.append([name, "", "", str(e)[:200], "", "NO"])
        for measure in (timing_parameters, emulation_of_matmul, emulation_of_block):
            if a.only in "emulating":
                rows.append(measure(a.bin, tmp))
    head = ["case", "required floor us", "achieved us", "ratio", "goal", "met"]
    if a.markdown:
        print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
        for r in rows:
            print("| " + " | ".join(r) + " |")
    else:
        for r in [head] + rows:
            print(f"{r[0]:50s} {r[1]:>18s} {r[2]:>12s} {r[3]:>11s} {r[4]:>11s} {r[5]:>4s}")
    sys.exit(any(r[-1] == "NO" for r in rows))


def timing_parameters(bindir, tmp):
    """Cycles of the hand-written microbenchmarks, one per timing parameter, as it is and doubled: on paper and run."""
    lines = run([bindir / "emulate_test", "--gtest_filter=Timing.*"]).stdout.decode().splitlines()
    found = [[int(w) for w in re.findall(r" (\d+)", line)] for line in lines if line.startswith("timing ")]
    paper, ran = sum(f[0] + f[2] for f in found), sum(f[1] + f[3] for f in found)
    same = found and all(f[0] == f[1] and f[2] == f[3] for f in found)
    return [f"{len(found)} timing parameters, as given and doubled (cycles)", str(paper), str(ran), f"{ran / paper:.3f}", "each equal",
            "yes" if same else "NO"]


def run_seconds(bindir, obj, times):
    """Least seconds of tpu-run's step "run" - execution alone, no files read - on one thread."""
    best = 1e9
    for _ in range(times):
        p = run([bindir / "tpu-run", "-q", obj, "--inputs=seed:7", "--threads=1", "--time-passes"])
        for line in p.stderr.decode().splitlines():
            if line.split()[-1:] == ["run"]:
                best = min(best, float(line.split()[0]) / 1e3)
    return best


def host_matmul_seconds():
    """Seconds of numpy's f32 product of 2048^3, one thread, with the kernel that OpenBLAS picks by itself."""
    code = ("import numpy as np, time\na = np.random.rand(2048, 2048).astype(np.float32)\nb = a.T.copy()\na @ b\nbest = 9\n"
            "for _ in range(5):\n t = time.perf_counter(); a @ b; best = min(best, time.perf_counter() - t)\nprint(best)")
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS")}
    env["OPENBLAS_NUM_THREADS"] = "1"
    return float(run([sys.executable, "-c", code], env=env).stdout)


def emulation_of_matmul(bindir, tmp):
    obj = compile_program(bindir, matmul(2048, 2048, 2048), "v5e:1x1", tmp)
    peer, ours = host_matmul_seconds(), run_seconds(bindir, obj, 3)
    return ["emulating bf16 2048^3, against the host's f32 product", f"{peer * 1e6:.0f}", f"{ours * 1e6:.0f}",
            f"{ours / peer:.2f} x", "<= 2.5 x", "yes" if ours <= 2.5 * peer else "NO"]


def emulation_of_block(bindir, tmp):
    """ns of host time per vector instruction executed, over all devices of a transformer block."""
    case = ROOT / "testdata/cases/transformer_block_bf16"
    obj = compile_program(bindir, (case / "program.mlir").read_text(), json.loads((case / "case.json").read_text())["target"], tmp)
    execute(bindir, obj, tmp)
    records = [json.loads(line) for line in (tmp / "r.jsonl").read_text().splitlines()]
    count = sum(r["vector_instructions"] for r in records if r["type"] == "device")
    ours = run_seconds(bindir, obj, 100)  # 5 s: a shared host is slow for seconds at a time
    return [f"emulating transformer_block_bf16, {count} vector instructions", "", f"{ours * 1e6:.0f}", f"{ours / count * 1e9:.0f} ns",
            "<= 250 ns", "yes" if ours / count <= 250e-9 else "NO"]


if __name__ == "__main__":
    main()
