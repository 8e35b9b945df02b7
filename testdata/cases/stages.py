#!/usr/bin/env python3
"""What must hold of every stage of every case: same bytes on any thread count and from any directory, assembly that
assembles to the object it came from, documents that run, results that do not depend on when chips start.

    stages.py [--bin DIR] [--jobs N] [FOLDER ...]

FOLDER is a case folder (program.mlir, case.json, .npy files); without any, the cases beside this file and those that
handed.txt names for machine mode, where they are there. The checks, each counted:

    bytes      tpu-partition, tpu-lower, tpu-schedule, tpu-asm with --threads=1, and with --threads=2 from another directory
    assembly   tpu-asm -d, then tpu-asm, gives the object's bytes
    spmd llo bundles object   tpu-run takes the document and its results are the case's within its tolerances
    skew       chips that start 0 to 50 us apart compute the same bits

The last line is "N passed, N failed".
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
TIME_LIMIT_S = 120


class Failed(Exception):
    pass


def run(words, cwd):
    done = subprocess.run([str(w) for w in words], cwd=cwd, capture_output=True, timeout=TIME_LIMIT_S)
    if done.returncode:
        first = done.stderr.decode(errors="replace").strip().splitlines()[:1] or ["no message"]
        raise Failed(f"{Path(str(words[0])).name} exit {done.returncode}: {first[0]}")


def as_float(a):
    """bf16, which numpy keeps as two raw bytes, as f32."""
    if a.dtype.kind == "V" or (a.dtype == np.uint16):
        return (np.atleast_1d(a.view(np.uint16)).astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(a.shape)
    return a


def difference(got, want, spec):
    if got.shape != want.shape:
        return f"{list(got.shape)}, expected {list(want.shape)}"
    exact = want.dtype.kind in "biu" and "rtol" not in spec and "storage" not in spec
    if not exact:
        got, want = as_float(got), as_float(want)
    wrong = got != want if exact else ~np.isclose(got.astype(np.float64), want.astype(np.float64), rtol=spec.get("rtol", 0),
                                                  atol=spec.get("atol", 0), equal_nan=True)
    return f"{int(wrong.sum())} of {want.size} elements differ" if wrong.any() else None


class Case:
    def __init__(self, folder, bin_dir):
        self.folder, self.bin = folder, bin_dir
        self.spec = json.loads((folder / "case.json").read_text())

    def check(self):
        """(check, why it failed or None) for every check."""
        with tempfile.TemporaryDirectory() as temp:
            self.here, self.there = Path(temp) / "one", Path(temp) / "other" / "deep"
            self.here.mkdir()
            self.there.mkdir(parents=True)
            yield from self.attempt("bytes", self.same_bytes)
            if not (self.here / "object").exists():
                return
            yield from self.attempt("assembly", self.assembles_again)
            for stage in ("spmd", "llo", "bundles", "object"):
                yield from self.attempt(stage, lambda stage=stage: self.runs(stage))
            if self.devices() > 1:
                yield from self.attempt("skew", self.skewed)

    def attempt(self, name, check):
        try:
            yield name, check()
        except (Failed, subprocess.TimeoutExpired, OSError) as e:
            yield name, str(e)

    def devices(self):
        text = (self.here / "spmd").read_text(errors="replace")[:4000]
        mark = '"partitions":'
        return int(text.split(mark, 1)[1].split(",", 1)[0]) if mark in text else 1

    def same_bytes(self):
        target = ["--target", self.spec["target"]] if "target" in self.spec else []
        program = self.folder / "program.mlir"
        tools = [("spmd", "tpu-partition", program, target), ("llo", "tpu-lower", None, ["--precision=highest"]),
                 ("bundles", "tpu-schedule", None, []), ("object", "tpu-asm", None, [])]
        before = None
        for stage, tool, source, flags in tools:
            # One directory reads a path of its own, the other a path that leads elsewhere.
            near = os.path.relpath(source, self.here) if source else before
            far = source or self.here / before
            run([self.bin / tool, "-q", near, *flags, "--threads=1", "-o", stage], self.here)
            run([self.bin / tool, "-q", far, *flags, "--threads=2", "-o", stage], self.there)
            if (self.here / stage).read_bytes() != (self.there / stage).read_bytes():
                return f"{tool}: other bytes with two threads from another directory"
            before = stage
        return None

    def assembles_again(self):
        run([self.bin / "tpu-asm", "-q", "-d", "object", "-o", "text.s"], self.here)
        run([self.bin / "tpu-asm", "-q", "text.s", "-o", "again"], self.here)
        if (self.here / "object").read_bytes() != (self.here / "again").read_bytes():
            return "the disassembly assembles to other bytes"
        return None

    def values(self, stage, tag, *flags):
        words = [self.bin / "tpu-run", "-q", stage, *flags]
        for i, spec in enumerate(self.spec["inputs"]):
            kind = "bits" if "storage" in spec else ""
            words.append(f"--input={i}={kind}@{self.folder / spec['file']}")
        outputs = [self.here / f"{tag}{i}.npy" for i in range(len(self.spec["outputs"]))]
        words += [f"--output={i}=@{f}" for i, f in enumerate(outputs)]
        run(words, self.here)
        return [np.load(f) for f in outputs]

    def runs(self, stage):
        for i, (got, spec) in enumerate(zip(self.values(stage, stage), self.spec["outputs"])):
            why = difference(got, np.load(self.folder / spec["file"]), spec)
            if why:
                return f"output {i}: {why}"
        return None

    def skewed(self):
        plain = [np.load(self.here / f"object{i}.npy") for i in range(len(self.spec["outputs"]))]
        for i, (a, b) in enumerate(zip(plain, self.values("object", "skew", "--start-skew=seed:7"))):
            if a.tobytes() != b.tobytes():
                return f"output {i} depends on when the chips start"
        return None


def handed():
    """Folders that handed.txt names for machine mode."""
    shared = HERE.parent.parent.parent / "shared"
    folders = []
    for line in (HERE / "handed.txt").read_text().splitlines():
        words = line.split("#", 1)[0].split()
        if len(words) > 3 and words[1] == "machine":
            folders += [shared / words[0] / name for name in words[3:]]
    there = [f for f in folders if (f / "case.json").exists()]
    if folders and not there:
        print("../shared is not there: its cases are not run")
    return there


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--bin", type=Path, default=HERE.parent.parent / "build" / "bin")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    own = [d for d in sorted(HERE.iterdir()) if (d / "case.json").exists()]
    folders = [f.resolve() for f in args.folders] or own + handed()
    passed = failed = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(lambda folder: list(Case(folder, args.bin.resolve()).check()), folders)
        for folder, checks in zip(folders, results):
            for name, why in checks:
                passed += why is None
                failed += why is not None
                if why:
                    print(f"{folder.parent.name}/{folder.name} {name}: {why}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0 or passed == 0)


if __name__ == "__main__":
    main()
