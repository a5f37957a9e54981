#!/usr/bin/env bash
# Everything that must hold: the build without a warning and all its tests, then the same under the address and
# undefined-behaviour sanitizers, then the tests where threads matter under the thread sanitizer. Ends with
# `N passed, N failed` (`, N skipped`: these said that they cannot run here) over all, and non-zero if anything failed; a build that fails counts as one.
# As many tests at once as there are processors.
# Usage: tests/run.sh [--all] [plain|sanitize|thread] [LABEL]   LABEL: only the tests of that label: unit, integration, …
# --all: also those labelled `long`: a Slurm farm, packages and a container on bare Debians. A LABEL has its long ones.
# With a LABEL the thread sanitizer only where it is asked for; of that label it runs those that are also `thread`.
set -euo pipefail
exec </dev/null
cd "$(dirname "${BASH_SOURCE[0]}")/.."

BUILD_SECONDS=1800 # of one build: some virtual machines take three times as long as others
TESTS_SECONDS=2000 # of one build's tests
TEST_SECONDS=300   # of one test without a limit of its own
passed=0
failed=0
skipped=0

# report FILE: "PASSED FAILED SKIPPED" of ctest's own record. Only a test that ran to its end has passed, and only one
# that says itself that it cannot run here (and has printed why) is skipped.
report() {
	/usr/bin/python3 - "$1" <<-'END'
		import sys
		import xml.etree.ElementTree as tree
		cases = list(tree.parse(sys.argv[1]).getroot().iter("testcase"))
		ran = [case.get("status") for case in cases].count("run")
		skipped = sum("SKIP_RETURN_CODE" in (skip.get("message") or "") for case in cases for skip in case.iter("skipped"))
		print(ran, len(cases) - ran - skipped, skipped)
	END
}

# suite DIRECTORY TARGET LABEL CMAKE-OPTIONS…
suite() {
	local directory=$1 target=$2 label=$3 counts status=0 selection=()
	local log=$directory/run-build.log record=$PWD/$directory/tests.xml
	shift 3
	mkdir -p "$directory"
	echo "== $directory: building (cmake $*)"
	if ! timeout -k 10 "$BUILD_SECONDS" cmake -S . -B "$directory" "$@" >"$log" 2>&1 ||
		! timeout -k 10 "$BUILD_SECONDS" cmake --build "$directory" --target "$target" -j "$(nproc)" >>"$log" 2>&1; then
		tail -n 60 "$log"
		echo "== $directory: the build failed; all of it is in $log"
		failed=$((failed + 1))
		return
	fi
	if [ "$target" != all ]; then
		selection=(-L '^thread$')
	fi
	if [ -n "$label" ]; then
		selection+=(-L "^$label\$")
	elif [ -z "$all" ]; then
		selection+=(-LE '^long$')
	fi
	rm -f "$record"
	timeout -k 10 "$TESTS_SECONDS" ctest --test-dir "$directory" -j "$(nproc)" --output-on-failure --no-tests=error \
		--timeout "$TEST_SECONDS" --output-junit "$record" "${selection[@]}" || status=$?
	if ! counts=$(report "$record"); then
		echo "== $directory: ctest left no record (it ended with $status)"
		failed=$((failed + 1))
		return
	fi
	read -r -a counts <<<"$counts"
	passed=$((passed + counts[0]))
	failed=$((failed + counts[1]))
	skipped=$((skipped + counts[2]))
	if [ "$status" -ne 0 ] && [ "${counts[1]}" -eq 0 ]; then
		echo "== $directory: ctest ended with $status"
		failed=$((failed + 1))
	fi
}

builds=
all=
if [ "${1:-}" = --all ]; then
	all=yes
	shift
fi
case ${1:-} in
plain | sanitize | thread)
	builds=$1
	shift
	;;
esac
if [ $# -gt 1 ] || [[ ${1:-} == -* ]]; then
	echo "usage: tests/run.sh [--all] [plain|sanitize|thread] [LABEL]" >&2
	exit 2
fi
label=${1:-}
if [ -z "$builds" ]; then
	builds="plain sanitize"
	[ -n "$label" ] || builds+=" thread"
fi

tests/packages.sh all
# For the labels system and farm. Not on a machine with services of its own, where these tests do not run and Slurm's
# would begin to.
if [ "$(id -u)" -eq 0 ] && [ ! -d /run/systemd/system ]; then
	tests/packages.sh debootstrap systemd-container iproute2 slurm-wlm munge
fi
export UBSAN_OPTIONS=print_stacktrace=1
for build in $builds; do
	case $build in
	plain) suite build all "$label" -DNPUMEM_WERROR=ON ;;
	sanitize) suite build-sanitize all "$label" -DNPUMEM_WERROR=ON -DNPUMEM_SANITIZE=address,undefined ;;
	thread) suite build-thread thread_tests "$label" -DNPUMEM_WERROR=ON -DNPUMEM_SANITIZE=thread ;;
	esac
done
echo "$passed passed, $failed failed$([ "$skipped" -eq 0 ] || echo ", $skipped skipped")"
[ "$failed" -eq 0 ]
