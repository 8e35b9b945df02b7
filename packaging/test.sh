#!/bin/bash
# From a clone to all tests passed: packages, build, unit and golden tests, the cases of testdata/cases in all three modes,
# and, where the folder ../shared lies beside the project, the cases handed there. The last line is "N passed, N failed";
# the exit status is 0 only where none failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
passed=0 failed=0
start=$SECONDS
phase() { printf '\n== %s  [%d s]\n' "$1" "$((SECONDS - start))"; }
finish() {
  printf '\n[%d s]\n%d passed, %d failed\n' "$((SECONDS - start))" "$passed" "$failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
  exit
}
# count OUTPUT STATUS NAME: adds the totals of a case runner's last line; one that says nothing counts as one failure.
count() {
  local line
  line=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$1" | tail -n 1)
  if [ -z "$line" ]; then
    echo "$3: ended with status $2 and no total"
    failed=$((failed + 1))
    return
  fi
  read -r p _ f _ <<<"$line"
  passed=$((passed + p)) failed=$((failed + f))
}

phase "packages"
packaging/install-packages.sh || { echo "packages are missing"; failed=1; finish; }

phase "build"
mkdir -p build
{ cmake --preset release && cmake --build --preset release; } >build/test-build.log 2>&1 || {
  tail -n 40 build/test-build.log
  echo "the build failed"
  failed=1
  finish
}

phase "unit and golden tests"
for program in build/bin/*_test; do
  log=build/$(basename "$program").log
  "$program" >"$log" 2>&1
  status=$?
  ok=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log")
  bad=$(sed -n 's/^ *\([0-9]*\) FAILED TESTS\{0,1\}$/\1/p' "$log")
  bad=${bad:-0}
  [ "$status" -ne 0 ] && [ "$bad" -eq 0 ] && bad=1 && echo "$program: ended with status $status"
  printf '%-20s %5d passed %3d failed\n' "$(basename "$program")" "${ok:-0}" "$bad"
  grep -E '^\[  SKIPPED \] [A-Za-z]' "$log" | sort -u
  [ "$bad" -gt 0 ] && grep -vE '^\[ (RUN|      OK) ' "$log" | tail -n 60
  passed=$((passed + ${ok:-0})) failed=$((failed + bad))
done

run_cases() {  # run_cases LABEL COMMAND...
  local label=$1 log=build/cases.log
  shift
  printf -- '-- %s\n' "$label"
  "$@" >"$log" 2>&1
  local status=$?
  cat "$log"
  count "$log" "$status" "$label"
}

phase "cases of testdata/cases"
for mode in source spmd machine; do
  run_cases "$mode" /usr/bin/python3 testdata/cases/run.py --mode "$mode"
done

phase "commands of the README"
run_cases "examples" packaging/try-readme.sh

phase "recipes of tpu-frontends(7), with frameworks from PyPI"
run_cases "JAX, XLA and TensorFlow; PyTorch's wheels are 7 GB and not tried here" packaging/try-frontends.sh jax tensorflow

phase "package"
run_cases "the Debian package, installed" packaging/try-package.sh

phase "stages of every case, random programs"
run_cases "stages" /usr/bin/python3 testdata/cases/stages.py
for chip in v5e testdata/chips/tiny.json; do for devices in 1 8; do
  run_cases "random programs on $devices devices, $chip" /usr/bin/python3 testdata/random/random_programs.py \
    --seed 1 --count 15 --chip "$chip" --devices "$devices"
done; done

# cases_of FOLDER FORM NAME...: a folder with the cases of that name, or all, whose program is there in this form alone.
cases_of() {
  local folder=$1 form=$2 out=build/handed/$1/$2 case
  shift 2
  rm -rf "$out"
  for case in "${@:-*}"; do
    # shellcheck disable=SC2086  # a pattern where no name is given
    for program in ../shared/$folder/$case/program."$form"; do
      [ -f "$program" ] || continue
      case=$(basename "$(dirname "$program")")
      mkdir -p "$out/$case"
      ln -s "$PWD/../shared/$folder/$case"/* "$out/$case/"
      find "$out/$case" -name 'program.*' ! -name "program.$form" -delete
    done
  done
  echo "$out"
}

phase "handed cases"
if [ -x ../shared/tools/run_cases.py ]; then
  declare -A sets=()
  while read -r folder form mode flags names; do
    if [ "$form" = = ]; then
      sets[$folder]="$mode $flags $names"
      continue
    fi
    case $names in \$*) names=${sets[${names#\$}]} ;; esac
    flag_words=()
    [ "$flags" = - ] || IFS=, read -r -a flag_words <<<"$flags"
    # shellcheck disable=SC2086  # a list of names
    run_cases "$folder $form $mode $flags" /usr/bin/python3 ../shared/tools/run_cases.py --mode "$mode" "${flag_words[@]}" \
      "$(cases_of "$folder" "$form" $names)"
  done < <(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' testdata/cases/handed.txt)
else
  echo "../shared is not there: its cases are not run"
fi
finish
