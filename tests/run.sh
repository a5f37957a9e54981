#!/usr/bin/env bash
# Everything that must hold: the build without a warning and all its tests, then the same under the address and
# undefined-behaviour sanitizers. Ends with `N passed, N failed` over both, and non-zero if anything failed; a
# build that fails counts as one.
# Usage: tests/run.sh [plain|sanitize] [LABEL]        LABEL: only the tests of that label: unit, integration, …
set -euo pipefail
exec </dev/null
cd "$(dirname "${BASH_SOURCE[0]}")/.."

BUILD_SECONDS=1200 # of one build
TESTS_SECONDS=1200 # of one build's tests
TEST_SECONDS=300   # of one test without a limit of its own
passed=0
failed=0

# report FILE: "PASSED FAILED" of ctest's own record. Only a test that ran to its end has passed.
report() {
	/usr/bin/python3 - "$1" <<-'END'
		import sys
		import xml.etree.ElementTree as tree
		cases = [case.get("status") for case in tree.parse(sys.argv[1]).getroot().iter("testcase")]
		print(cases.count("run"), len(cases) - cases.count("run"))
	END
}

# suite DIRECTORY LABEL CMAKE-OPTIONS…
suite() {
	local directory=$1 label=$2 counts status=0 selection=()
	local log=$directory/run-build.log record=$PWD/$directory/tests.xml
	shift 2
	mkdir -p "$directory"
	echo "== $directory: building (cmake $*)"
	if ! timeout -k 10 "$BUILD_SECONDS" cmake -S . -B "$directory" "$@" >"$log" 2>&1 ||
		! timeout -k 10 "$BUILD_SECONDS" cmake --build "$directory" -j "$(nproc)" >>"$log" 2>&1; then
		tail -n 60 "$log"
		echo "== $directory: the build failed; all of it is in $log"
		failed=$((failed + 1))
		return
	fi
	if [ -n "$label" ]; then
		selection=(-L "^$label\$")
	fi
	rm -f "$record"
	timeout -k 10 "$TESTS_SECONDS" ctest --test-dir "$directory" --output-on-failure --no-tests=error \
		--timeout "$TEST_SECONDS" --output-junit "$record" "${selection[@]}" || status=$?
	if ! counts=$(report "$record"); then
		echo "== $directory: ctest left no record (it ended with $status)"
		failed=$((failed + 1))
		return
	fi
	passed=$((passed + ${counts% *}))
	failed=$((failed + ${counts#* }))
	if [ "$status" -ne 0 ] && [ "${counts#* }" -eq 0 ]; then
		echo "== $directory: ctest ended with $status"
		failed=$((failed + 1))
	fi
}

builds="plain sanitize"
case ${1:-} in
plain | sanitize)
	builds=$1
	shift
	;;
esac
if [ $# -gt 1 ] || [[ ${1:-} == -* ]]; then
	echo "usage: tests/run.sh [plain|sanitize] [LABEL]" >&2
	exit 2
fi
label=${1:-}

tests/packages.sh
export UBSAN_OPTIONS=print_stacktrace=1
for build in $builds; do
	case $build in
	plain) suite build "$label" -DNPUMEM_WERROR=ON ;;
	sanitize) suite build-sanitize "$label" -DNPUMEM_WERROR=ON -DNPUMEM_SANITIZE=address,undefined ;;
	esac
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
