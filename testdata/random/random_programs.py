#!/usr/bin/env python3
"""Random StableHLO programs of every kind that the machine path takes, run twice through the tools: on the evaluator from
the text, and on emulated chips from machine code. Integers must agree exactly, floats within a bound.

    random_programs.py --bin build/bin --seed 1 --count 20 [--chip v5e] [--devices 8] [--keep DIR]

With several devices, arguments and some of the values have random shardings over a mesh.

A failing program is printed with its seed. The last line is 'N passed, N failed'.
"""
import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

MLIR = {"f32": "f32", "bf16": "bf16", "s32": "i32", "u32": "ui32", "s8": "i8", "u8": "ui8", "pred": "i1"}


MESHES = {4: [("x", 4)], 8: [("x", 4), ("y", 2)], 2: [("x", 2)]}
CHIPS = {1: "1x1", 2: "2x1", 4: "2x2", 8: "4x2"}


class Program:
    def __init__(self, rng, devices=1):
        self.rng = rng
        self.mesh = MESHES.get(devices, [])
        self.lines = []
        self.values = []  # (name, type, dims)
        self.args = []
        self.count = 0

    def type(self, t, dims):
        return "tensor<" + "".join(f"{d}x" for d in dims) + MLIR[t] + ">"

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    def emit(self, t, dims, text):
        n = self.name()
        self.lines.append(f"    {n} = {text}")
        self.values.append((n, t, tuple(dims)))
        return n

    def pick(self, ok=lambda t, d: True):
        pool = [v for v in self.values if ok(v[1], v[2])]
        return self.rng.choice(pool) if pool else None

    def arg(self, t, dims):
        n = f"%arg{len(self.args)}"
        self.args.append((n, t, tuple(dims)))
        self.values.append((n, t, tuple(dims)))

    def constant(self, t, dims, value):
        n = self.name()
        self.lines.append(f"    {n} = stablehlo.constant dense<{value}> : {self.type(t, dims)}")
        return n

    def sharding(self, dims):
        """Random axes over the dimensions, each used once at most; uneven shards included."""
        axes = [name for name, _ in self.mesh]
        self.rng.shuffle(axes)
        parts = [[] for _ in dims]
        for a in axes:
            if dims and self.rng.random() < 0.7:
                parts[self.rng.randrange(len(dims))].append(a)
        body = ", ".join("{" + ", ".join(f'"{a}"' for a in p) + "}" for p in parts)
        return f"<@mesh, [{body}]>"

    def arg_sharding(self, dims):
        """The same where the sizes divide, as at the border of a program."""
        sizes = dict(self.mesh)
        free = [name for name, _ in self.mesh]
        parts = []
        for d in dims:
            fitting = [a for a in free if d % sizes[a] == 0]
            take = [self.rng.choice(fitting)] if fitting and self.rng.random() < 0.6 else []
            free = [a for a in free if a not in take]
            parts.append(take)
        body = ", ".join("{" + ", ".join(f'"{a}"' for a in p) + "}" for p in parts)
        return f"#sdy.sharding<@mesh, [{body}]>"

    # --- one step of each kind; each returns nothing and may do nothing
    def unary(self):
        v = self.pick()
        n, t, d = v
        ty = self.type(t, d)
        if t in ("f32", "bf16"):
            op = self.rng.choice(["abs", "negate", "tanh", "logistic", "floor", "ceil", "sign", "sine", "cbrt", "exponential", "cosine", "round_nearest_even"])
        elif t == "pred":
            op = "not"
        elif t in ("u8", "u32"):
            op = self.rng.choice(["not", "popcnt", "count_leading_zeros"])
        else:
            op = self.rng.choice(["abs", "negate", "not", "sign", "popcnt"])
        self.emit(t, d, f"stablehlo.{op} {n} : {ty}")

    def binary(self):
        a = self.pick()
        b = self.pick(lambda t, d: (t, d) == a[1:])
        t, d = a[1:]
        if t in ("f32", "bf16"):
            op = self.rng.choice(["add", "subtract", "multiply", "maximum", "minimum"])
            if self.rng.random() < 0.1:
                op = "atan2"
        elif t == "pred":
            op = self.rng.choice(["and", "or", "xor"])
        else:
            op = self.rng.choice(["add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor", "divide", "remainder",
                                  "shift_left", "shift_right_logical", "shift_right_arithmetic", "power"])
        self.emit(t, d, f"stablehlo.{op} {a[0]}, {b[0]} : {self.type(t, d)}")

    def compare_select(self):
        a = self.pick(lambda t, d: t != "pred")
        if not a:
            return
        b = self.pick(lambda t, d: (t, d) == a[1:])
        t, d = a[1:]
        kind = "FLOAT" if t in ("f32", "bf16") else ("UNSIGNED" if t[0] == "u" else "SIGNED")
        p = self.emit("pred", d, f"stablehlo.compare {self.rng.choice(['EQ', 'NE', 'LT', 'LE', 'GT', 'GE'])}, {a[0]}, {b[0]}, "
                                 f"{self.rng.choice(['FLOAT', 'TOTALORDER']) if kind == 'FLOAT' else kind} : "
                                 f"({self.type(t, d)}, {self.type(t, d)}) -> {self.type('pred', d)}")
        self.emit(t, d, f"stablehlo.select {p}, {a[0]}, {b[0]} : {self.type('pred', d)}, {self.type(t, d)}")

    def convert(self):
        n, t, d = self.pick()
        to = self.rng.choice(["f32", "bf16", "s32", "s8", "u8"])
        if t in ("f32", "bf16") and to in ("s8", "u8", "u32"):
            to = "s32"
        if t in ("f32", "bf16") and to == "s32":
            n = self.emit(t, d, f"stablehlo.tanh {n} : {self.type(t, d)}")
            scale = self.constant(t, d, "100.0")
            n = self.emit(t, d, f"stablehlo.multiply {n}, {scale} : {self.type(t, d)}")
        self.emit(to, d, f"stablehlo.convert {n} : ({self.type(t, d)}) -> {self.type(to, d)}")

    def transpose(self):
        v = self.pick(lambda t, d: len(d) >= 2)
        if not v:
            return
        n, t, d = v
        p = list(range(len(d)))
        self.rng.shuffle(p)
        out = [d[i] for i in p]
        self.emit(t, out, f"stablehlo.transpose {n}, dims = {p} : ({self.type(t, d)}) -> {self.type(t, out)}")

    def reshape(self):
        n, t, d = self.pick(lambda t, d: len(d) >= 1) or (None, None, None)
        if not n:
            return
        total = int(np.prod(d))
        out, rest = [], total
        for _ in range(self.rng.randint(0, 2)):
            fs = [f for f in range(1, rest + 1) if rest % f == 0]
            f = self.rng.choice(fs)
            out.append(f)
            rest //= f
        out.append(rest)
        self.emit(t, out, f"stablehlo.reshape {n} : ({self.type(t, d)}) -> {self.type(t, out)}")

    def slice(self):
        v = self.pick(lambda t, d: len(d) >= 1)
        if not v:
            return
        n, t, d = v
        spec, out = [], []
        for x in d:
            lo = self.rng.randint(0, x - 1)
            hi = self.rng.randint(lo + 1, x)
            st = self.rng.choice([1, 1, 1, 2, 3])
            spec.append(f"{lo}:{hi}:{st}")
            out.append((hi - lo + st - 1) // st)
        self.emit(t, out, f"stablehlo.slice {n} [{', '.join(spec)}] : ({self.type(t, d)}) -> {self.type(t, out)}")

    def pad(self):
        v = self.pick(lambda t, d: len(d) >= 1)
        if not v:
            return
        n, t, d = v
        lo = [self.rng.randint(-1 if x > 2 else 0, 3) for x in d]
        hi = [self.rng.randint(0, 3) for x in d]
        inner = [self.rng.choice([0, 0, 1]) for x in d]
        out = [l + x + (x - 1) * i + h for x, l, h, i in zip(d, lo, hi, inner)]
        c = self.constant(t, (), {"f32": "1.5", "bf16": "1.5", "pred": "true"}.get(t, "7"))
        self.emit(t, out, f"stablehlo.pad {n}, {c}, low = {lo}, high = {hi}, interior = {inner} : "
                          f"({self.type(t, d)}, {self.type(t, ())}) -> {self.type(t, out)}")

    def concatenate(self):
        a = self.pick(lambda t, d: len(d) >= 1)
        if not a:
            return
        n, t, d = a
        axis = self.rng.randrange(len(d))
        b = self.pick(lambda t2, d2: t2 == t and len(d2) == len(d) and all(x == y or i == axis for i, (x, y) in enumerate(zip(d, d2))))
        out = list(d)
        out[axis] += b[2][axis]
        self.emit(t, out, f"stablehlo.concatenate {n}, {b[0]}, dim = {axis} : ({self.type(t, d)}, {self.type(t, b[2])}) -> {self.type(t, out)}")

    def reverse(self):
        v = self.pick(lambda t, d: len(d) >= 1)
        if not v:
            return
        n, t, d = v
        dims = sorted(self.rng.sample(range(len(d)), self.rng.randint(1, len(d))))
        self.emit(t, d, f"stablehlo.reverse {n}, dims = {dims} : {self.type(t, d)}")

    def broadcast(self):
        v = self.pick(lambda t, d: len(d) <= 2)
        if not v:
            return
        n, t, d = v
        rank = len(d) + self.rng.randint(0, 2)
        dims = self.rng.sample(range(rank), len(d))
        out = [self.rng.choice([1, 2, 3, 5, 9, 17]) for _ in range(rank)]
        for i, x in zip(dims, d):
            out[i] = x
        if np.prod(out) > 60000:
            return
        self.emit(t, out, f"stablehlo.broadcast_in_dim {n}, dims = {dims} : ({self.type(t, d)}) -> {self.type(t, out)}")

    def iota(self):
        d = self.dims()
        if not d:
            return
        t = self.rng.choice(["f32", "s32", "u32", "bf16", "u8"])
        self.emit(t, d, f"stablehlo.iota dim = {self.rng.randrange(len(d))} : {self.type(t, d)}")

    def reduce(self):
        v = self.pick(lambda t, d: len(d) >= 1)
        if not v:
            return
        n, t, d = v
        dims = sorted(self.rng.sample(range(len(d)), self.rng.randint(1, len(d))))
        out = [x for i, x in enumerate(d) if i not in dims]
        ops = {"f32": [("add", "0.0"), ("maximum", "0xFF800000"), ("minimum", "0x7F800000")],
               "bf16": [("add", "0.0"), ("maximum", "0xFF80"), ("minimum", "0x7F80")],
               "pred": [("and", "true"), ("or", "false")]}
        ints = [("add", "0"), ("maximum", "0" if t[0] == "u" else {"s32": "-2147483648", "s8": "-128"}.get(t, "0")), ("or", "0"), ("xor", "0")]
        op, init = self.rng.choice(ops.get(t, ints))
        c = self.constant(t, (), init)
        if t in ("s32", "u8", "s8", "u32") and self.rng.random() < 0.3:  # an init that only the run knows
            start = self.pick(lambda t2, d2: t2 == t and not d2)
            c = start[0] if start else c
        self.emit(t, out, f"stablehlo.reduce({n} init: {c}) applies stablehlo.{op} across dimensions = {dims} : "
                          f"({self.type(t, d)}, {self.type(t, ())}) -> {self.type(t, out)}")

    def arg_maximum(self):
        v = self.pick(lambda t, d: len(d) >= 1 and t != "pred")
        if not v:
            return
        n, t, d = v
        axis = self.rng.randrange(len(d))
        out = [x for i, x in enumerate(d) if i != axis]
        low = {"f32": "0xFF800000", "bf16": "0xFF80", "s32": "-2147483648", "s8": "-128"}.get(t, "0")
        kind = "FLOAT" if t in ("f32", "bf16") else ("UNSIGNED" if t[0] == "u" else "SIGNED")
        io = self.emit("s32", d, f"stablehlo.iota dim = {axis} : {self.type('s32', d)}")
        c, zero = self.constant(t, (), low), self.constant("s32", (), "0")
        e, i = self.type(t, ()), self.type("s32", ())
        r = self.name()
        self.lines.append(
            f"    {r}:2 = stablehlo.reduce({n} init: {c}), ({io} init: {zero}) across dimensions = [{axis}] : "
            f"({self.type(t, d)}, {self.type('s32', d)}, {e}, {i}) -> ({self.type(t, out)}, {self.type('s32', out)})\n"
            f"     reducer(%a: {e}, %b: {e}) (%i: {i}, %j: {i}) {{\n"
            f"      %p = stablehlo.compare GT, %a, %b, {kind} : ({e}, {e}) -> tensor<i1>\n"
            f"      %q = stablehlo.compare EQ, %a, %b, {kind} : ({e}, {e}) -> tensor<i1>\n"
            f"      %l = stablehlo.compare LT, %i, %j, SIGNED : ({i}, {i}) -> tensor<i1>\n"
            f"      %m = stablehlo.and %q, %l : tensor<i1>\n"
            f"      %k = stablehlo.or %p, %m : tensor<i1>\n"
            f"      %v = stablehlo.select %p, %a, %b : tensor<i1>, {e}\n"
            f"      %w = stablehlo.select %k, %i, %j : tensor<i1>, {i}\n"
            f"      stablehlo.return %v, %w : {e}, {i}\n    }}")
        self.values += [(r + "#0", t, tuple(out)), (r + "#1", "s32", tuple(out))]

    def bitcast(self):
        v = self.pick(lambda t, d: t in ("f32", "s32", "u32", "s8", "u8"))
        if not v:
            return
        n, t, d = v
        if t in ("s32", "u32", "f32") and self.rng.random() < 0.5:
            to, out = self.rng.choice(["s8", "u8"]), list(d) + [4]
        elif t in ("s8", "u8") and d and d[-1] == 4:
            to, out = self.rng.choice(["s32", "u32"]), list(d)[:-1]
        else:  # never to floats: their bits would be unlike any number
            to, out = self.rng.choice(["s8", "u8"] if t in ("s8", "u8") else ["s32", "u32"]), d
        self.emit(to, out, f"stablehlo.bitcast_convert {n} : ({self.type(t, d)}) -> {self.type(to, out)}")

    def tuple(self):
        a, b = self.pick(), self.pick()
        ta, tb = self.type(*a[1:]), self.type(*b[1:])
        t = self.name()
        self.lines.append(f"    {t} = stablehlo.tuple {a[0]}, {b[0]} : tuple<{ta}, {tb}>")
        self.emit(*b[1:], f"stablehlo.get_tuple_element {t}[1] : (tuple<{ta}, {tb}>) -> {tb}")

    def branch(self):
        a = self.pick()
        b = self.pick(lambda t, d: (t, d) == a[1:])
        ty = self.type(*a[1:])
        flip = "stablehlo.not %x" if a[1] == "pred" else f"stablehlo.add {a[0]}, {a[0]}"
        last = f"      %y = {flip} : {ty}\n" if a[1] != "pred" else f"      %y = stablehlo.not {a[0]} : {ty}\n"
        r = self.name()
        if self.rng.random() < 0.5:
            p = self.pick(lambda t, d: t == "pred" and not d)
            p = p[0] if p else self.constant("pred", (), self.rng.choice(["true", "false"]))
            self.lines.append(f'    {r} = "stablehlo.if"({p}) ({{\n{last}      stablehlo.return %y : {ty}\n    }}, {{\n'
                              f"      stablehlo.return {b[0]} : {ty}\n    }}) : (tensor<i1>) -> {ty}")
        else:
            i = self.pick(lambda t, d: t == "s32" and not d)
            i = i[0] if i else self.constant("s32", (), str(self.rng.randint(-1, 3)))
            self.lines.append(f'    {r} = "stablehlo.case"({i}) ({{\n      stablehlo.return {b[0]} : {ty}\n    }}, {{\n{last}'
                              f"      stablehlo.return %y : {ty}\n    }}, {{\n      stablehlo.return {a[0]} : {ty}\n    }}) : (tensor<i32>) -> {ty}")
        self.values.append((r, *a[1:]))

    def reshard(self):
        v = self.pick(lambda t, d: len(d) >= 1)
        if v and self.mesh:
            n, t, d = v
            self.emit(t, d, f"sdy.sharding_constraint {n} {self.sharding(d)} : {self.type(t, d)}")

    def dot(self):
        t = self.rng.choice(["f32", "bf16", "s8", "f32"])
        a = self.pick(lambda t2, d: t2 == t and len(d) >= 1)
        if not a:
            return
        n, _, d = a
        lc = self.rng.randrange(len(d))
        other = [self.rng.choice([1, 3, 8, 20, 130]) for _ in range(self.rng.randint(0, 1))]
        rd = other + [d[lc]]
        self.rng.shuffle(rd)
        rc = rd.index(d[lc])
        m = self.constant(t, rd, {"s8": "3"}.get(t, "0.25"))
        io = self.emit("f32", rd, f"stablehlo.iota dim = {rc} : {self.type('f32', rd)}")
        sc = self.constant("f32", rd, "0.01")
        io = self.emit("f32", rd, f"stablehlo.multiply {io}, {sc} : {self.type('f32', rd)}")
        if t == "bf16":
            io = self.emit(t, rd, f"stablehlo.convert {io} : ({self.type('f32', rd)}) -> {self.type(t, rd)}")
        if t != "s8":
            m = self.emit(t, rd, f"stablehlo.add {m}, {io} : {self.type(t, rd)}")
        out = [x for i, x in enumerate(d) if i != lc] + [x for i, x in enumerate(rd) if i != rc]
        if np.prod(out) > 60000:
            return
        ot = "s32" if t == "s8" else t
        self.emit(ot, out, f"stablehlo.dot_general {n}, {m}, contracting_dims = [{lc}] x [{rc}], precision = [HIGHEST, HIGHEST] : "
                           f"({self.type(t, d)}, {self.type(t, rd)}) -> {self.type(ot, out)}")

    def dynamic(self):
        v = self.pick(lambda t, d: len(d) >= 1)
        if not v:
            return
        n, t, d = v
        sizes = [self.rng.randint(1, x) for x in d]
        starts = [self.constant("s32", (), str(self.rng.randint(-2, x + 1))) for x in d]
        st = ", ".join(self.type("s32", ()) for _ in d)
        s = self.emit(t, sizes, f"stablehlo.dynamic_slice {n}, {', '.join(starts)}, sizes = {sizes} : ({self.type(t, d)}, {st}) -> {self.type(t, sizes)}")
        starts = [self.constant("s32", (), str(self.rng.randint(-2, x + 1))) for x in d]
        self.emit(t, d, f"stablehlo.dynamic_update_slice {n}, {s}, {', '.join(starts)} : ({self.type(t, d)}, {self.type(t, sizes)}, {st}) -> {self.type(t, d)}")

    def loop(self):
        n, t, d = self.pick(lambda t, d: t in ("f32", "s32"))  if any(v[1] in ("f32", "s32") for v in self.values) else (None, None, None)
        if not n:
            return
        i0 = self.constant("s32", (), "0")
        lim = self.constant("s32", (), str(self.rng.randint(0, 4)))
        one = self.constant("s32", (), "1")
        ty, si = self.type(t, d), self.type("s32", ())
        r = self.name()
        body = "stablehlo.negate %x" if t == "f32" else "stablehlo.add %x, %x"
        self.lines.append(f"    {r}:2 = stablehlo.while(%i = {i0}, %x = {n}) : {si}, {ty}\n"
                          f"     cond {{\n      %c = stablehlo.compare LT, %i, {lim}, SIGNED : ({si}, {si}) -> tensor<i1>\n"
                          f"      stablehlo.return %c : tensor<i1>\n    }} do {{\n"
                          f"      %j = stablehlo.add %i, {one} : {si}\n      %y = {body} : {ty}\n"
                          f"      stablehlo.return %j, %y : {si}, {ty}\n    }}")
        self.values.append((r + "#1", t, d))

    def dims(self):
        return [self.rng.choice([1, 2, 3, 4, 7, 8, 9, 16, 17, 33, 64, 100, 128, 130]) for _ in range(self.rng.randint(0, 3))]

    def build(self, steps):
        for _ in range(self.rng.randint(1, 3)):
            d = self.dims()
            while np.prod(d) > 20000:
                d = self.dims()
            self.arg(self.rng.choice(["f32", "f32", "bf16", "s32", "s8", "u8", "pred", "u32"]), d)
        kinds = [self.unary, self.binary, self.binary, self.compare_select, self.convert, self.transpose, self.reshape, self.slice, self.pad,
                 self.concatenate, self.reverse, self.broadcast, self.iota, self.reduce, self.reduce, self.dot, self.dynamic, self.loop,
                 self.arg_maximum, self.bitcast, self.tuple, self.branch]
        if self.mesh:
            kinds += [self.reshard] * 3
        while len(self.lines) < steps:
            self.rng.choice(kinds)()
            self.values = [v for v in self.values if np.prod(v[2]) <= 60000]
        made = [v for v in self.values if v not in self.args]
        outs = made[-2:] + self.rng.sample(made[:-2], min(len(made[:-2]), 5))
        outs = outs or self.values[-1:]
        free = list(range(len(outs)))  # results that may take an argument's storage

        def attrs(t, d):
            found = [f"sdy.sharding = {self.arg_sharding(d)}"] if self.mesh else []
            fitting = [i for i in free if outs[i][1:] == (t, d)]
            if fitting and self.rng.random() < 0.7:
                free.remove(fitting[0])
                found.append(f"tf.aliasing_output = {fitting[0]} : i32")
            return " {" + ", ".join(found) + "}" if found else ""
        sig = ", ".join(f"{n}: {self.type(t, d)}{attrs(t, d)}" for n, t, d in self.args)
        res = ", ".join(self.type(t, d) for _, t, d in outs)
        ret = ", ".join(n for n, _, _ in outs)
        count = int(np.prod([n for _, n in self.mesh]))
        head = f"module @random attributes {{mhlo.num_partitions = {count} : i32}} {{\n"
        if self.mesh:
            head += "  sdy.mesh @mesh = <[" + ", ".join(f'"{a}"={n}' for a, n in self.mesh) + "]>\n"
        return (head + f"  func.func public @main({sig}) -> ({res}) {{\n" + "\n".join(self.lines) +
                f"\n    return {ret} : {res}\n  }}\n}}\n"), outs


def to_float(a, t):
    if t == "bf16":
        return (np.atleast_1d(a.view(np.uint16)).astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(a.shape).astype(np.float64)
    return a.astype(np.float64)


def check(bindir, seed, chip, devices, keep, limit):
    rng = random.Random(seed)
    text, outs = Program(rng, devices).build(rng.randint(4, 24))
    with tempfile.TemporaryDirectory() as tmp:
        tmp = Path(keep) if keep else Path(tmp)
        tmp.mkdir(exist_ok=True)
        (tmp / "p.mlir").write_text(text)

        def run(*cmd):
            p = subprocess.run([str(c) for c in cmd], capture_output=True, timeout=limit)
            if p.returncode:
                raise RuntimeError(f"{Path(str(cmd[0])).name} exit {p.returncode}: " + p.stderr.decode(errors='replace').strip()[:400])

        per = 2 if chip in ("v2", "v3", "v7x") and devices > 1 else 1
        tool = lambda n: Path(bindir) / n
        outputs = lambda tag: [f for i in range(len(outs)) for f in ("--output", f"{i}=@{tmp}/{tag}{i}.npy")]
        run(tool("tpu-run"), tmp / "p.mlir", "--inputs=seed:7", *outputs("want"))
        run(tool("tpu-partition"), tmp / "p.mlir", "--target", f"{chip}:{CHIPS[devices // per]}", "-o", tmp / "1.json")
        run(tool("tpu-lower"), tmp / "1.json", "--precision", "highest", "-o", tmp / "2.json")
        run(tool("tpu-schedule"), tmp / "2.json", "-o", tmp / "3.json")
        run(tool("tpu-asm"), tmp / "3.json", "-o", tmp / "4.obj")
        run(tool("tpu-run"), tmp / "4.obj", "--strict", "--inputs=seed:7", *outputs("got"))
        for i, (n, t, d) in enumerate(outs):
            want, got = to_float(np.load(f"{tmp}/want{i}.npy"), t), to_float(np.load(f"{tmp}/got{i}.npy"), t)
            tol = {"f32": 1e-4, "bf16": 4e-2}.get(t, 0)
            scale = np.abs(want[np.isfinite(want)]).max(initial=1.0) if tol else 1
            if not np.isclose(got, want, rtol=tol, atol=tol * scale if tol else 0, equal_nan=True).all():
                raise RuntimeError(f"output {i} ({t}{list(d)}, {n}) differs: max {np.nanmax(np.abs(got - want))}")
    return text


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--bin", default="build/bin")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--count", type=int, default=20)
    ap.add_argument("--chip", default="v5e")
    ap.add_argument("--devices", type=int, default=1, choices=sorted(CHIPS))
    ap.add_argument("--limit", type=float, default=60)
    ap.add_argument("--keep")
    ap.add_argument("--show", action="store_true", help="print each failing program")
    a = ap.parse_args()
    passed = failed = 0
    for seed in range(a.seed, a.seed + a.count):
        try:
            check(a.bin, seed, a.chip, a.devices, a.keep, a.limit)
            passed += 1
        except (RuntimeError, OSError, ValueError, subprocess.TimeoutExpired) as e:
            failed += 1
            print(f"seed {seed}: {str(e)[:500]}", flush=True)
            if a.show:
                rng = random.Random(seed)
                print(Program(rng, a.devices).build(rng.randint(4, 24))[0])
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0 or passed == 0)


if __name__ == "__main__":
    main()
