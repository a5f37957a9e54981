#!/usr/bin/env bash
# The demo from a bare checkout: packages, a build in build/, a daemon of its own, the programs of tests/demo/, and
# nothing left running. Its last lines are the accuracies of float, fx8 and fx16. Usage: tests/demo.sh
set -euo pipefail
exec </dev/null
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tests/packages.sh demo
mkdir -p build
log=build/demo-build.log
echo "building in build/ …"
if ! { cmake -S . -B build && cmake --build build --target demo -j "$(nproc)"; } >"$log" 2>&1; then
	tail -n 40 "$log" >&2
	echo "demo: the build failed; all of it is in $log" >&2
	exit 1
fi
exec tests/demo/run.sh build
