#!/usr/bin/env bash
# Everything that must hold: the build without a warning and all its tests, then those of C code under the address and
# undefined-behaviour sanitizers, then the tests where threads matter under the thread sanitizer. Ends with
# `N passed, N failed` (`, N skipped`: these said that they cannot run here) over all, and non-zero if anything failed; a build that fails counts as one.
# Half as many tests more at once than there are processors, as many of them wait most of their time.
# Usage: tests/run.sh [--all] [plain|sanitize|thread] [LABEL]   LABEL: only the tests of that label: unit, integration, …
# --all: also those labelled `long`: a Slurm farm, packages, containers, benches, long random runs. A LABEL has its long ones.
# With a LABEL the thread sanitizer only where it is asked for; of that label it runs those that are also `thread`.
set -euo pipefail
exec </dev/null
cd "$(dirname "${BASH_SOURCE[0]}")/.."

BUILD_SECONDS=1800 # of one build: some virtual machines take three times as long as others
TESTS_SECONDS=3600 # of one build's tests
TEST_SECONDS=600   # of one test without a limit of its own
generator=() # a new build folder is for Ninja, which starts two processes fewer for each object
if command -v ninja >/dev/null; then
	generator=(env CMAKE_GENERATOR=Ninja)
fi
passed=0
failed=0
skipped=0
only_alone=()

# outcomes FILE: three lines of names from ctest's own record: passed, failed, skipped. Only a test that ran to its end has
# passed, and only one that says itself that it cannot run here (and has printed why) is skipped.
outcomes() {
	/usr/bin/python3 - "$1" <<-'END'
		import sys
		import xml.etree.ElementTree as tree
		names = [], [], []
		for case in tree.parse(sys.argv[1]).getroot().iter("testcase"):
		    is_skipped = any("SKIP_RETURN_CODE" in (skip.get("message") or "") for skip in case.iter("skipped"))
		    names[0 if case.get("status") == "run" else 2 if is_skipped else 1].append(case.get("name"))
		for some in names:
		    print(*some)
	END
}

# alone DIRECTORY NAME…: runs those of these failed tests that are of the label integration once more, one at a time, and
# counts as passed what passes now. Such a test has processes and clocks, which busy neighbours of the machine disturb.
alone() {
	local directory=$1 record=$PWD/$1/tests-alone.xml names
	shift
	rm -f "$record"
	timeout -k 10 "$TESTS_SECONDS" ctest --test-dir "$directory" -j1 --output-on-failure --no-tests=ignore \
		--timeout "$TEST_SECONDS" --output-junit "$record" -L '^integration$' -R "^($(IFS='|' && echo "$*"))\$" || true
	names=$(outcomes "$record") || return 0
	read -r -a names <<<"${names%%$'\n'*}"
	passed=$((passed + ${#names[@]}))
	failed=$((failed - ${#names[@]}))
	only_alone+=("${names[@]}")
}

# suite DIRECTORY TARGET LABEL CMAKE-OPTIONS…
suite() {
	local directory=$1 target=$2 label=$3 names ran broken absent status=0 selection=()
	local log=$directory/run-build.log record=$PWD/$directory/tests.xml
	shift 3
	mkdir -p "$directory"
	echo "== $directory: building (cmake $*)"
	if ! timeout -k 10 "$BUILD_SECONDS" "${generator[@]}" cmake -S . -B "$directory" "$@" >"$log" 2>&1 ||
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
	timeout -k 10 "$TESTS_SECONDS" ctest --test-dir "$directory" -j "$((($(nproc) * 3 + 1) / 2))" --output-on-failure --no-tests=error \
		--timeout "$TEST_SECONDS" --output-junit "$record" "${selection[@]}" || status=$?
	if ! names=$(outcomes "$record"); then
		echo "== $directory: ctest left no record (it ended with $status)"
		failed=$((failed + 1))
		return
	fi
	mapfile -t names <<<"$names"
	read -r -a ran <<<"${names[0]}"
	read -r -a broken <<<"${names[1]:-}"
	read -r -a absent <<<"${names[2]:-}"
	passed=$((passed + ${#ran[@]}))
	failed=$((failed + ${#broken[@]}))
	skipped=$((skipped + ${#absent[@]}))
	if [ ${#broken[@]} -gt 0 ]; then
		alone "$directory" "${broken[@]}"
	elif [ "$status" -ne 0 ]; then
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
if { [ -n "$all" ] || [[ $label =~ ^(system|farm|long)$ ]]; } && [ "$(id -u)" -eq 0 ] && [ ! -d /run/systemd/system ]; then
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
[ ${#only_alone[@]} -eq 0 ] || echo "passed only when run alone: ${only_alone[*]}"
echo "$passed passed, $failed failed$([ "$skipped" -eq 0 ] || echo ", $skipped skipped")"
[ "$failed" -eq 0 ]
