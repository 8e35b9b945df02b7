#!/bin/bash
# Runs the commands of the README's examples as they are written, in one shell, each paragraph a test. The last line is
# "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/.." || exit
script=build/readme.sh
{
  echo 'set -euo pipefail'
  # Indented lines of the section; every paragraph says its number when it begins.
  awk '/^## /{inside = ($0 == "## Examples")}
       inside && /^    /{if (!started) print "echo \"@paragraph " ++n "\""; started = 1; print substr($0, 5)}
       inside && !/^    /{started = 0}
       END{print "echo \"@paragraph end\""}' README.md
} >"$script"
total=$(grep -c '^echo "@paragraph [0-9]' "$script")
bash "$script" >build/readme.log 2>&1 </dev/null
begun=$(grep -c '^@paragraph [0-9]' build/readme.log)
if grep -q '^@paragraph end' build/readme.log; then
  echo "$total passed, 0 failed"
  exit 0
fi
echo "paragraph $begun of the README's examples failed:"
tail -n 20 build/readme.log
echo "$((begun > 0 ? begun - 1 : 0)) passed, $((total - (begun > 0 ? begun - 1 : 0))) failed"
exit 1
