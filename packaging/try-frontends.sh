#!/bin/bash
# Runs the recipes of tpu-frontends(7) as they are written, with frameworks from PyPI: try-frontends.sh [SET...], where the
# sets are jax (with XLA's dumps), tensorflow and pytorch (7 GB of wheels); without a word the first two. A recipe is a block
# after a line '.\" file NAME' (a program) or '.\" run SET' (commands, a test). The last line is "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/.." || exit
declare -A wheels=([jax]="jax==0.10.2" [tensorflow]="tensorflow-cpu==2.21.0"
                   [pytorch]="jax==0.10.2 flax torch==2.9.1 torchax==0.0.13 torch_xla==2.9.0")
[ $# -gt 0 ] || set -- jax tensorflow
root=$PWD/build/frontends passed=0 failed=0
export PATH=$PWD/build/bin:$PATH

# recipes FOLDER SET: the programs of the man page, and the commands of this set, each beside the programs above it.
recipes() {
  awk -v folder="$1" -v set="$2" '
    /^\.\\" (file|run) / {name = $2 == "file" ? $3 : $3 == set ? sprintf("%02d.sh", ++n) : ""; kind = $2; next}
    /^\.nf/ {inside = name != ""; text = ""; next}
    /^\.fi/ && inside {
      if (kind == "file") programs[name] = text
      else {
        dir = folder "/" n; system("mkdir -p " dir)
        for (p in programs) printf "%s", programs[p] > (dir "/" p)
        printf "set -euo pipefail\n%s", text > (dir "/run.sh")
      }
      inside = 0; name = ""; next
    }
    inside && !/^\.R[SE]/ {gsub(/\\-/, "-"); text = text $0 "\n"}' man/tpu-frontends.7
}

for set in "$@"; do
  folder=$root/$set
  rm -rf "$folder"/[0-9]*
  mkdir -p "$folder"
  # shellcheck disable=SC2086  # a list of packages
  if ! { python3 -m venv "$folder/env" && "$folder/env/bin/pip" install -q ${wheels[$set]}; } >"$folder/install.log" 2>&1; then
    tail -n 3 "$folder/install.log"
    echo "$set: cannot be installed from PyPI here, its recipes are not run"
    continue
  fi
  recipes "$folder" "$set"
  for recipe in "$folder"/[0-9]*; do
    if (cd "$recipe" && PATH=$folder/env/bin:$PATH bash run.sh >log 2>&1 </dev/null); then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      echo "$set, recipe $(basename "$recipe") failed:"
      tail -n 20 "$recipe/log"
    fi
  done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
