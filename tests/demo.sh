#!/usr/bin/env bash
# The demo from a bare checkout: packages, a build in build/, a daemon of its own, the programs of tests/demo/, and
# nothing left running. Its last lines are the accuracies of float, fx8 and fx16. Usage: tests/demo.sh
set -euo pipefail
exec </dev/null
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# progress: of a build's output, a line for every tenth that is done.
progress() {
	local line done=0
	while IFS= read -r line; do
		printf '%s\n' "$line" >>"$log"
		if [[ $line =~ ^\[\ *([0-9]+)(%|/([0-9]+))\] ]]; then
			local percent=$((100 * BASH_REMATCH[1] / ${BASH_REMATCH[3]:-100}))
			if [ $((percent / 10)) -gt $((done / 10)) ]; then
				echo "demo:   $percent %, $SECONDS s"
				done=$percent
			fi
		fi
	done
}

failed() {
	tail -n 40 "$log" >&2
	echo "demo: $1 failed; all of its output is in $log" >&2
	exit 1
}

echo "demo: step 1 of 4: Debian's packages that are missing here"
tests/packages.sh demo
mkdir -p build
log=build/demo-build.log
echo "demo: step 2 of 4: configuring build/"
cmake -S . -B build >"$log" 2>&1 || failed "the configuration"
echo "demo: step 3 of 4: building with $(nproc) processors; on two this takes a few minutes"
cmake --build build --target demo -j "$(nproc)" 2>&1 | progress || failed "the build"
echo "demo: step 4 of 4: a daemon, and four processes that classify digits on it"
exec tests/demo/run.sh build
