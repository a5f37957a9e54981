#!/usr/bin/env bash
# gcc and clang, unoptimized and with -O3: the build without a warning, unit and conformance tests. Takes half an hour.
# Usage: tests/checks/compilers.sh
set -euo pipefail
exec </dev/null
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
tests/packages.sh gcc clang
passed=0
failed=0
for compiler in gcc clang; do
	for level in -O0 -O3; do
		build=build-$compiler$level
		cmake -S . -B "$build" -DCMAKE_C_COMPILER=$compiler -DNPUMEM_WERROR=ON -DCMAKE_BUILD_TYPE=None \
			-DCMAKE_C_FLAGS="-g $level" "$@" >"$build.log" 2>&1 &&
			cmake --build "$build" -j "$(nproc)" >>"$build.log" 2>&1 &&
			ctest --test-dir "$build" -L 'unit|conformance' --output-on-failure --timeout 900 &&
			passed=$((passed + 1)) || { failed=$((failed + 1)) && tail -n 30 "$build.log"; }
		mv "$build.log" "$build/build.log"
	done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
