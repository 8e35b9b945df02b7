#!/bin/bash
# Makes the Debian package of a built tree, installs it (as root; else unpacks it) and tries what users then have: the tools,
# their man pages and completions. The last line is "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/.." || exit
passed=0 failed=0
check() {  # check NAME COMMAND...
  local name=$1
  shift
  if "$@" >build/package.log 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "$name failed:"
    tail -n 20 build/package.log
  fi
}
finish() {
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
  exit
}

check "making the package" cmake --build --preset release --target package
deb=$(find build/package -maxdepth 1 -name '*.deb' | head -n 1)
[ -n "$deb" ] || finish
if [ "$(id -u)" -eq 0 ]; then
  root=
  check "installing $deb" dpkg -i "$deb"
  trap 'dpkg -r tpu-toolchain >/dev/null 2>&1' EXIT
else
  root=$PWD/build/package/root
  check "unpacking $deb" dpkg-deb -x "$deb" "$root"
fi
bin=$root/usr/bin share=$root/usr/share
main_job() {
  PATH="$bin:$PATH" bash -o pipefail -c \
    'tpu-partition -q testdata/cases/mlp_megatron/program.mlir | tpu-lower | tpu-schedule | tpu-asm | tpu-run --inputs=seed:7'
}
check "the main job with the installed tools" main_job
for tool in tpu-partition tpu-lower tpu-schedule tpu-asm tpu-run; do
  check "$bin/$tool" "$bin/$tool" --version
  check "the man page of $tool" bash -o pipefail -c "zcat -f '$share/man/man1/$tool.1'* | groff -man -Tutf8 -ww -z"
  check "the bash completion of $tool" bash -n "$share/bash-completion/completions/$tool"
  check "the zsh completion of $tool" test -s "$share/zsh/vendor-completions/_$tool"
  check "the fish completion of $tool" test -s "$share/fish/vendor_completions.d/$tool.fish"
done
for page in tpu-isa tpu-ops tpu-frontends; do
  check "the page $page" bash -c "zcat -f $share/man/man7/$page.7* | groff -man -Tutf8 -ww -z"
done
finish
