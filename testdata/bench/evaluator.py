#!/usr/bin/env python3
"""Speed of the reference evaluator against XLA on the CPU, and of reading a large program, as a table.

    evaluator.py --bin build/bin [--python python3] [--corpus ../shared/corpus] [--only WORD] [--markdown]

The peer is jax from PyPI in the python3 that --python names (the one on the PATH unless told otherwise); it runs the same
programs on the same arrays with as many threads, and its results are checked against ours. Elementwise programs are held
against a plain copy by as many threads: half of the bytes that the program must move are read and written once. Each figure
is the least of several runs, theirs after compilation, ours each in a process of its own. Rows whose peer or input is absent
are named and left out. Exit status 1 where a row misses its goal.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MI = 1 << 20

# Runs a program on arrays in XLA: times it, saves result 0. Arguments: program, directory of in<i>.npy, repeats.
PEER = r"""
import sys, time
from pathlib import Path
import numpy as np, jax
program, where, repeats = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
text = Path(program).read_text()
client = jax.devices("cpu")[0].client
if text.startswith("HloModule"):
    from jaxlib import _hlo, _jax
    proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    text = _jax.mlir.xla_computation_to_mlir_module(_hlo.XlaComputation(proto))
from jax._src import compiler
from jax._src.lib import xla_client
from jaxlib import _jax
run = client.compile_and_load(text, _jax.DeviceList(tuple(client.devices()[:1])), xla_client.CompileOptions())
count = len(list(where.glob("in*.npy")))
arrays = [np.load(where / f"in{i}.npy") for i in range(count)]
best = 1e9
for _ in range(repeats):
    args = [jax.device_put(a) for a in arrays]  # the program may take them for its results
    jax.block_until_ready(args)
    t = time.perf_counter()
    out = run.execute_sharded(args).disassemble_into_single_device_arrays()
    jax.block_until_ready(out)
    best = min(best, time.perf_counter() - t)
np.save(where / "expected.npy", np.asarray(out[0][0]))
print(best)
"""

# A copy of n bytes by t threads into memory that is already there.
COPY = r"""
import sys, time, threading
import numpy as np
n, t, repeats = (int(a) for a in sys.argv[1:4])
a = np.ones(n // 4, np.float32)
b = np.zeros_like(a)
parts = [slice(i * len(a) // t, (i + 1) * len(a) // t) for i in range(t)]
best = 1e9
for _ in range(repeats):
    work = [threading.Thread(target=np.copyto, args=(b[s], a[s])) for s in parts]
    start = time.perf_counter()
    for w in work: w.start()
    for w in work: w.join()
    best = min(best, time.perf_counter() - start)
print(best)
"""

MATMUL = """func.func @main(%a: tensor<1024x1024xf32>, %b: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %r : tensor<1024x1024xf32>
}
"""
SUM = """func.func @main(%a: tensor<67108864xf32>, %b: tensor<67108864xf32>) -> tensor<67108864xf32> {
  %r = stablehlo.add %a, %b : tensor<67108864xf32>
  return %r : tensor<67108864xf32>
}
"""
CHAIN = """func.func @main(%a: tensor<67108864xf32>) -> tensor<67108864xf32> {
  %x = stablehlo.constant dense<1.25> : tensor<f32>
  %y = stablehlo.constant dense<-0.5> : tensor<f32>
  %z = stablehlo.constant dense<0.0> : tensor<67108864xf32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<67108864xf32>
  %1 = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f32>) -> tensor<67108864xf32>
  %2 = stablehlo.multiply %a, %0 : tensor<67108864xf32>
  %3 = stablehlo.add %2, %1 : tensor<67108864xf32>
  %r = stablehlo.maximum %3, %z : tensor<67108864xf32>
  return %r : tensor<67108864xf32>
}
"""

# name, text or file of the corpus, most times the peer
AGAINST_XLA = [
    ("f32 matmul 1024^3", MATMUL, 2.0),
    ("transformer_chess9m_fwd.mlir", None, 4.0),
    ("resnet50_fwd.hlo", None, 4.0),
]
# name, text, bytes that it must move, most times the copy
AGAINST_COPY = [
    ("a + b, 64 Mi f32", SUM, 3 * 256 * MI, 1.5),
    ("max(1.25 a - 0.5, 0), 64 Mi f32", CHAIN, 2 * 256 * MI, 1.5),
]


def run(cmd):
    p = subprocess.run([str(c) for c in cmd], capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(f"{Path(str(cmd[0])).name} exit {p.returncode}: {p.stderr.strip()[-400:]}")
    return p


def signature(bindir, program):
    """Element type and dims of each argument."""
    text = run([bindir / "tpu-partition", "-q", program, "--signature"]).stdout
    return re.findall(r"^argument .*?\b((?:bf|f|s|u)\d+|pred)\[([\d,]*)\]", text, re.M)


def make_inputs(bindir, program, where):
    """Weights small, vectors (biases, variances) positive, integers few: no program overflows."""
    import numpy as np
    rng = np.random.default_rng(7)
    types = {"f32": np.float32, "s32": np.int32, "u32": np.uint32, "s8": np.int8, "u8": np.uint8, "s64": np.int64}
    for i, (element, dims) in enumerate(signature(bindir, program)):
        shape = [int(d) for d in dims.split(",")] if dims else []
        if element.startswith("f"):
            low, high = (0.5, 1.5) if len(shape) < 2 else (-0.05, 0.05)
            data = rng.random(shape, dtype=np.float32) * np.float32(high - low) + np.float32(low)
        else:
            data = rng.integers(0, 30, shape)
        np.save(where / f"in{i}.npy", np.asarray(data).astype(types[element]))


def our_seconds(bindir, program, where, threads, repeats, extra=()):
    inputs = [f"--input={i}=@{where}/in{i}.npy" for i in range(len(list(where.glob("in*.npy"))))]
    best = 1e9
    for _ in range(repeats):
        p = run([bindir / "tpu-run", "-q", program, *inputs, f"--threads={threads}", "--time-passes", *extra])
        best = min(best, float(re.search(r"([\d.]+) ms\s+[\d.]+ %\s+run", p.stderr).group(1)) / 1000)
    return best


def row(name, peer, ours, goal):
    ratio = ours / peer
    return [name, f"{peer * 1000:.1f}", f"{ours * 1000:.1f}", f"{ratio:.2f}", f"<= {goal:g} x", "yes" if ratio <= goal else "NO"]


def xla_rows(args, tmp):
    for name, text, goal in AGAINST_XLA:
        if args.only not in name:
            continue
        program = tmp / "p.mlir" if text else args.corpus / name
        if text:
            program.write_text(text)
        elif not program.exists():
            print(f"left out: {name} is not in {args.corpus}", file=sys.stderr)
            continue
        where = tmp / re.sub(r"\W", "_", name)
        where.mkdir()
        make_inputs(args.bin, program, where)
        peer = float(run([args.python, "-c", PEER, program, where, 10]).stdout.split()[-1])
        run([args.bin / "tpu-run", "-q", program, *[f"--input={i}=@{where}/in{i}.npy" for i in range(len(list(where.glob('in*.npy'))))],
             f"--expect=0=@{where}/expected.npy", "--rtol=1e-3", "--atol=1e-4"])
        yield row(f"{name}, XLA (ms)", peer, our_seconds(args.bin, program, where, args.threads, 10), goal)


def copy_rows(args, tmp):
    for name, text, moved, goal in AGAINST_COPY:
        if args.only not in name:
            continue
        program, where = tmp / "p.mlir", tmp / "big"
        program.write_text(text)
        where.mkdir(exist_ok=True)
        make_inputs(args.bin, program, where)
        copy = float(run([sys.executable, "-c", COPY, moved // 2, args.threads, 10]).stdout)
        yield row(f"{name}, copy (ms)", copy, our_seconds(args.bin, program, where, args.threads, 5), goal)
        for f in where.iterdir():
            f.unlink()


def import_rows(args, tmp):
    """The 50,000 operations of an unrolled transformer: CPU time up to a verified module, peak memory with the document."""
    source = args.corpus / "jax/large/gpt_unrolled_50k_ops/program.mlir.zst"
    if args.only not in "import":
        return
    if not source.exists():
        print(f"left out: {source} is absent", file=sys.stderr)
        return
    text = tmp / "unrolled.mlir"
    run(["zstd", "-dqf", source, "-o", text])
    size = text.stat().st_size
    os.environ["TPU_IMPORT_FILE"] = str(text)
    found = {}
    for r in json.loads(run([args.bin / "frontend_bench", "--benchmark_format=json", "--benchmark_repetitions=3"]).stdout)["benchmarks"]:
        if r["run_type"] == "iteration":
            found[r["run_name"]] = min(found.get(r["run_name"], 1e9), r["cpu_time"] / 1000)
    seconds = found["File"]
    yield ["import of 50k ops, %.1f MB: CPU s" % (size / 1e6), "", f"{seconds:.3f}", "", "<= 0.3 s", "yes" if seconds <= 0.3 else "NO"]
    whole, tenth = found["Unrolled/50000"] / 10, found["Unrolled/5000"]
    yield ["import, time per byte at a tenth of the size", f"{tenth * 1000:.1f}", f"{whole * 1000:.1f}", f"{whole / tenth:.2f}",
           "0.8 to 1.25", "yes" if 0.8 <= whole / tenth <= 1.25 else "NO"]
    pid = os.posix_spawn(str(args.bin / "tpu-partition"), ["tpu-partition", "-q", "--stop-after=import", str(text), "-o", str(tmp / "o.json")],
                         os.environ)
    peak = os.wait4(pid, 0)[2].ru_maxrss * 1024
    yield ["import, peak memory (MB), text (MB)", f"{size / 1e6:.1f}", f"{peak / 1e6:.1f}", f"{peak / size:.1f}", "<= 20 x",
           "yes" if peak <= 20 * size else "NO"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, default=ROOT / "build/bin")
    parser.add_argument("--python", default="python3", help="a Python that has jax")
    parser.add_argument("--corpus", type=Path, default=(ROOT / "../shared/corpus"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="")
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    makers = [import_rows, copy_rows]
    if subprocess.run([args.python, "-c", "import jax"], capture_output=True).returncode:
        print(f"left out: {args.python} has no jax, so there is no XLA to compare with (pip install jax)", file=sys.stderr)
    else:
        makers.append(xla_rows)
    head = ["case", "peer", "ours", "ratio", "goal", "met"]
    missed = False
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head) if args.markdown else "\t".join(head), flush=True)
    with tempfile.TemporaryDirectory() as tmp:
        for maker in makers:
            for cells in maker(args, Path(tmp)):
                missed |= cells[-1] == "NO"
                print("| " + " | ".join(cells) + " |" if args.markdown else "\t".join(cells), flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
