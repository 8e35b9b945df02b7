#!/usr/bin/env python3
"""Fuzzes the readers: one libFuzzer program for each (lib/**/*_fuzz.cc), with the address and undefined behaviour
sanitizers.

    packaging/fuzz.py [--seconds N] [--memory MB] [TARGET...]

Seeds are the files of testdata and of ../shared where it is present, the files inside of golden tests, and what the
tools of build/bin, where they are built, make of small programs. For each target: executions, regions and branches of
the reader's own sources that were reached, crashes. What was found stays in build-fuzz/fuzz/TARGET: corpus/ is taken
up again by the next round, crashes/ holds inputs that fail. The exit status is 1 where one does. Needs clang with its
libFuzzer, and llvm-profdata and llvm-cov of the same version."""
import argparse
import glob
import hashlib
import json
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LARGEST_SEED = 64 * 1024
TIMEOUT = 20  # seconds for one input: more is a hang


def is_document(*stages):
    stages = [b'"stage":"%s"' % s.encode() for s in stages]
    return lambda name, data: data[:1] == b'{' and any(s in data[:200] for s in stages)


def is_mlir(name, data):
    return name.endswith('.mlir') or data.lstrip().startswith((b'module', b'func.func', b'"builtin.module"'))


# Target: what is a seed of it (by name and bytes), and the sources that are read with it.
TARGETS = {
    'serial_npy': (lambda n, d: d[:6] == b'\x93NUMPY', ['serial/npy.cc', 'serial/npy_convert.cc']),
    'serial_npz': (lambda n, d: d[:2] == b'PK', ['serial/npz.cc']),
    'serial_safetensors': (lambda n, d: d[8:9] == b'{', ['serial/safetensors.cc']),
    'target_chip': (lambda n, d: b'"tpu-chip"' in d[:200], ['target/chip.cc', 'target/check.cc']),
    'hlo_document': (is_document('hlo', 'spmd'), ['hlo/document/read*.cc', 'serial/json.cc', 'serial/json_parse.cc',
                                                  'serial/fields.cc', 'serial/document.cc']),
    'llo_document': (is_document('llo'), ['llo/read.cc', 'llo/verify.cc']),
    'asm_bundles': (is_document('bundles'), ['asm/document_read.cc']),
    'asm_object': (lambda n, d: d[:7] == b'\x7fTPUOBJ', ['asm/object_read.cc', 'asm/bytes.h']),
    'asm_assembly': (lambda n, d: n.endswith('.s') or d.startswith((b'.target', b'#')) and b'.target' in d,
                     ['asm/assemble.cc', 'asm/directives.cc', 'asm/expression.cc', 'asm/line_cursor.cc',
                      'asm/source.cc', 'asm/label_names.cc', 'asm/constants.cc', 'asm/check.cc', 'isa/parse.cc']),
    'frontend_bytecode': (lambda n, d: d[:4] == b'ML\xefR', ['frontend/bytecode/*.cc']),
    'frontend_hlo_text': (lambda n, d: d.startswith(b'HloModule'), ['frontend/hlo_text/*.cc']),
    'frontend_stablehlo': (is_mlir, ['frontend/cursor.cc', 'frontend/parse_*.cc', 'frontend/rules.cc']),
}


def pieces_of(path, data):
    """The file, the files inside of a golden test, the programs between lines of `// -----` (in testdata/mistakes each
    with what is said of it behind it)."""
    if path.endswith('.test'):
        for section in re.split(rb'^%% ', data, flags=re.M)[1:]:
            head, _, text = section.partition(b'\n')
            yield head.decode(errors='replace'), text
    elif path.endswith('.edits'):
        base, _, edits = data.partition(b'\n====\n')
        for line in edits.split(b'\n'):
            parts = line.replace(b'\\n', b'\n').split(b'`')
            if len(parts) == 5:
                yield path, (base + b'\n').replace(parts[1], parts[3], 1)
    elif path.startswith('testdata/mistakes'):
        for text in data.split(b'// -----\n'):
            yield path, text[:text.rindex(b'\n// ')] + b'\n'
    elif path.endswith('.mlir') and b'\n// -----' in data:
        for text in data.split(b'// -----'):
            yield path, text
    else:
        yield path, data


def all_seeds():
    for root in ('testdata', '../shared/corpus', '../shared/conformance', 'lib/target/chips', 'build-fuzz/fuzz/made'):
        for folder, _, files in sorted(os.walk(root, followlinks=True)):
            for file in sorted(files):
                path = os.path.join(folder, file)
                if os.path.getsize(path) > 32 * LARGEST_SEED:
                    continue
                with open(path, 'rb') as f:
                    data = f.read()
                for name, text in pieces_of(path, data):
                    if len(text) <= LARGEST_SEED:
                        yield name, text


def make_documents():
    """Every stage of every small program that compiles."""
    made = 'build-fuzz/fuzz/made'
    if os.path.isdir(made) or not os.path.exists('build/bin/tpu-partition'):
        return
    os.makedirs(made)
    stages = [('spmd', 'tpu-partition'), ('llo', 'tpu-lower'), ('bundles', 'tpu-schedule'), ('tpuobj', 'tpu-asm'),
              ('s', 'tpu-asm')]
    for path in sorted(glob.glob('testdata/**/*.mlir', recursive=True) + glob.glob('../shared/corpus/jax/*/program.mlir')):
        base = '%s/%s' % (made, path.replace('/', '_'))
        subprocess.run(['build/bin/tpu-partition', '-q', path, '--stop-after=import', '-o', base + '.hlo'],
                       stderr=subprocess.DEVNULL)
        source = path
        for ending, tool in stages:
            out = '%s.%s' % (base, ending)
            command = ['build/bin/' + tool, '-q', source, '-o', out] + (['-d'] if ending == 's' else [])
            if subprocess.run(command, stderr=subprocess.DEVNULL).returncode != 0:
                break
            source = out


def write_dictionary(home, patterns):
    """The words that the reader's sources and the tables behind them spell out."""
    words = set()
    tables = ['include/tpu/hlo/*.def', 'include/tpu/isa/*.def', 'include/tpu/support/element_types.def']
    for pattern in tables + ['lib/' + p for p in patterns]:
        for path in glob.glob(pattern):
            with open(path) as f:
                words.update(re.findall(r'"([^\s"\\\\]{2,32})"', f.read()))
    with open(home + '/dictionary', 'w') as out:
        out.writelines('"%s"\n' % word for word in sorted(words))
    return home + '/dictionary'


def run(target, home, args):
    """libFuzzer's last figures."""
    command = ['build-fuzz/bin/%s_fuzz' % target, home + '/corpus', home + '/seeds', '-rss_limit_mb=%d' % args.memory,
               '-timeout=%d' % TIMEOUT, '-max_len=%d' % LARGEST_SEED, '-max_total_time=%d' % args.seconds,
               '-print_final_stats=1', '-artifact_prefix=%s/crashes/' % home, '-reload=0']
    command.append('-dict=' + write_dictionary(home, TARGETS[target][1]))
    env = dict(os.environ, LLVM_PROFILE_FILE='/dev/null', ASAN_OPTIONS='detect_leaks=1:malloc_limit_mb=%d' % args.memory)
    with open(home + '/log', 'wb') as log:
        status = subprocess.run(command, stderr=log, stdout=log, env=env).returncode
    with open(home + '/log', errors='replace') as log:
        figures = dict(re.findall(r'^stat::(\w+):\s+(\d+)', log.read(), flags=re.M))
    return status, figures


def coverage(target, home, patterns):
    """Regions and branches of the sources that the whole corpus reaches: (covered, all) of each, and by file."""
    binary = 'build-fuzz/bin/%s_fuzz' % target
    env = dict(os.environ, LLVM_PROFILE_FILE=home + '/profile.raw')
    subprocess.run([binary, '-runs=0', home + '/corpus', home + '/seeds'], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env=env)
    suffix = '-' + re.search(r'version (\d+)', subprocess.run(['clang++', '--version'], capture_output=True,
                                                              text=True).stdout).group(1)
    subprocess.run(['llvm-profdata' + suffix, 'merge', '-o', home + '/profile', home + '/profile.raw'], check=True)
    sources = [f for p in patterns for f in sorted(glob.glob('lib/' + p)) if not re.search(r'_(test|fuzz)\.cc$', f)]
    report = subprocess.run(['llvm-cov' + suffix, 'export', '-summary-only', binary, '-instr-profile', home + '/profile'],
                            capture_output=True, text=True, check=True).stdout
    files = json.loads(report)['data'][0]['files']
    totals = {}
    with open(home + '/coverage', 'w') as out:
        for file in files:
            line = next((source for source in sources if file['filename'].endswith(source)), None)
            if not line:
                continue
            for kind in ('regions', 'branches'):
                s = file['summary'][kind]
                before = totals.get(kind, (0, 0))
                totals[kind] = (before[0] + s['covered'], before[1] + s['count'])
                line += '  %s %d of %d' % (kind, s['covered'], s['count'])
            out.write(line + '\n')
    return totals


def percent(part):
    return '%.1f %%' % (100.0 * part[0] / max(1, part[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('targets', nargs='*', metavar='TARGET', help=', '.join(TARGETS))
    parser.add_argument('--seconds', type=int, default=60, help='for each target (60)')
    parser.add_argument('--memory', type=int, default=2048, help='limit in MB (2048)')
    parser.add_argument('--no-build', action='store_true', help='the programs are built already')
    args = parser.parse_args()
    for target in args.targets:
        if target not in TARGETS:
            parser.error('no target ' + target)
    os.chdir(TOP)
    if not args.no_build:
        subprocess.run(['cmake', '--preset', 'fuzz'], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(['cmake', '--build', '--preset', 'fuzz'], check=True)
    make_documents()
    seeds = list(all_seeds())
    failed = False
    for target in args.targets or TARGETS:
        is_seed, patterns = TARGETS[target]
        home = 'build-fuzz/fuzz/' + target
        for folder in ('seeds', 'corpus', 'crashes'):
            os.makedirs('%s/%s' % (home, folder), exist_ok=True)
        count = 0
        for name, data in seeds:
            if data and is_seed(name, data):
                count += 1
                with open('%s/seeds/%s' % (home, hashlib.sha1(data).hexdigest()[:16]), 'wb') as f:
                    f.write(data)
        status, figures = run(target, home, args)
        totals = coverage(target, home, patterns)
        crashes = len(os.listdir(home + '/crashes'))
        failed |= status != 0 or crashes > 0
        print('%-20s %5d seeds %10s runs  regions %s  branches %s  peak %s MB  %d crashes' %
              (target, count, figures.get('number_of_executed_units', '?'), percent(totals['regions']),
               percent(totals['branches']), figures.get('peak_rss_mb', '?'), crashes), flush=True)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
