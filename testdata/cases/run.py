#!/usr/bin/env python3
"""Runs the case folders beside this file through the tools and compares their results with numpy.

    run.py [--bin DIR] [--mode source|spmd|machine] [--target CHIP:TOPOLOGY] [NAME ...]

A case is program.mlir, case.json (inputs, outputs, tolerances, target) and .npy files. Nothing of the tools' own checks is
trusted: results are read back from the files that tpu-run wrote. machine mode takes the pipeline through standard streams.
The last line is "N passed, N failed".
"""
import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
TIME_LIMIT_S = 120


def pipeline(mode, program, target):
    """The shell line whose output tpu-run reads, or None where it reads the program itself."""
    partition = f"tpu-partition -q {program} --target={target}"
    if mode == "source":
        return None
    if mode == "spmd":
        return partition
    return f"{partition} | tpu-lower -q --precision=highest | tpu-schedule -q | tpu-asm -q"


def run_case(folder, mode, bin_dir, target):
    case = json.loads((folder / "case.json").read_text())
    program = shlex.quote(str(folder / "program.mlir"))
    front = pipeline(mode, program, target or case["target"])
    with tempfile.TemporaryDirectory() as temp:
        words = ["tpu-run", "-q", "-" if front else str(folder / "program.mlir")]
        if mode == "machine":
            words.append("--strict")
        words += [f"--input={i}={'bits' if 'storage' in spec else ''}@{folder / spec['file']}" for i, spec in enumerate(case["inputs"])]
        words += [f"--output={i}=@{temp}/{i}.npy" for i in range(len(case["outputs"]))]
        line = (front + " | " if front else "") + shlex.join(words)
        done = subprocess.run(["bash", "-o", "pipefail", "-c", f"PATH={shlex.quote(str(bin_dir))}:$PATH\n{line}"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIME_LIMIT_S)
        if done.returncode:
            first = done.stderr.strip().splitlines()[:1] or ["no message"]
            return f"exit {done.returncode}: {first[0]}"
        for i, spec in enumerate(case["outputs"]):
            why = difference(values(f"{temp}/{i}.npy", spec), values(folder / spec["file"], spec), spec)
            if why:
                return f"output {i}: {why}"
    return None


def values(path, spec):
    """The array of a file; bf16, which numpy lacks and files hold as 16 bits of some type, widened to f32."""
    array = np.load(path)
    if spec.get("storage") != "bf16-bits":
        return array
    return (np.atleast_1d(array.view(np.uint16)).astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(array.shape)


def difference(got, want, spec):
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
    exact = want.dtype.kind in "biu"
    wrong = got != want if exact else ~np.isclose(got, want, rtol=spec["rtol"], atol=spec["atol"], equal_nan=True)
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {want.size} differ, first at {at}: {got[at]}, expected {want[at]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--bin", type=Path, default=HERE.parent.parent / "build" / "bin")
    parser.add_argument("--mode", choices=["source", "spmd", "machine"], default="machine")
    parser.add_argument("--target", help="instead of the case's own")
    args = parser.parse_args()
    failed = 0
    folders = [d for d in sorted(HERE.iterdir()) if (d / "case.json").exists() and (not args.names or d.name in args.names)]
    for folder in folders:
        try:
            why = run_case(folder, args.mode, args.bin.resolve(), args.target)
        except subprocess.TimeoutExpired:
            why = f"no end within {TIME_LIMIT_S} s"
        except OSError as error:
            why = str(error)
        failed += why is not None
        print(f"{folder.name:30s} {'ok' if why is None else 'FAIL ' + why}", flush=True)
    print(f"{len(folders) - failed} passed, {failed} failed")
    sys.exit(1 if failed or not folders else 0)


if __name__ == "__main__":
    main()
