#!/usr/bin/env bash
# The integration tests with every daemon under valgrind's memcheck, on kernels without vectors wider than AVX2 (which
# valgrind does not know). Takes an hour or so. Usage: tests/checks/valgrind.sh [BUILD] [CTEST-OPTION…]
set -euo pipefail
exec </dev/null
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
tests/packages.sh valgrind
build=$(realpath "${1:-build}")
shift || true

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 1777 "$folder"
NPUMEM_VALGRIND=$folder ctest --test-dir "$build" -L integration -LE '^long$' -E 'deploy|static|completion|packages|turns|bounds|stalls|fault_calls' \
	--output-on-failure --timeout 1800 "$@" || failed=1
# What was killed may have been complained of as well.
complaints=$(find "$folder" -type f -size +0)
if [ -n "$complaints" ]; then
	echo "valgrind has complained:"
	# shellcheck disable=SC2086
	head -n 20 $complaints
	failed=1
fi
echo "$(find "$folder" -type f | wc -l) daemons ran under valgrind"
exit "${failed:-0}"
