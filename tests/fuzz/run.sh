#!/usr/bin/env bash
# Grows the corpora: builds the targets with clang, lets each look for so many seconds, and adds some of what reaches new
# code to tests/fuzz/corpus, up to FILES_MAX a target beside its seeds (seeds.py); all of it stays in build-fuzz/corpus for
# the next time. A finding is left in build-fuzz/findings, and ends this with 1.
# Usage: tests/fuzz/run.sh [TARGET…] [--seconds N]   all targets, 60 seconds each
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

FILES_MAX=16
BYTES_MAX=256 # of an input that is added
seconds=60
targets=()
while [ $# -gt 0 ]; do
	case $1 in
	--seconds)
		seconds=${2:?"--seconds needs a number"}
		shift
		;;
	-*)
		sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}" >&2
		exit 2
		;;
	*) targets+=("$1") ;;
	esac
	shift
done
if [ ${#targets[@]} -eq 0 ]; then
	for corpus in tests/fuzz/corpus/*/; do
		targets+=("$(basename "$corpus")")
	done
fi

build=build-fuzz
clang=$(command -v clang-14 || command -v clang)
cmake -S . -B $build -DNPUMEM_FUZZ=ON -DCMAKE_C_COMPILER="$clang" >/dev/null
cmake --build $build -j "$(nproc)" --target "${targets[@]/#/fuzz_}" >$build/run-build.log || {
	tail -n 40 $build/run-build.log
	exit 1
}
# Reading a file of an absurd shape asks for absurd memory, and is then refused.
export ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
mkdir -p $build/findings
failed=0

# Inputs that reach what the committed ones do not; the longest, as each of them reaches most.
add() {
	local target=$1 corpus=tests/fuzz/corpus/$1 all room file
	all=$(mktemp -d)
	cp "$corpus"/* "$all"
	"$build/tests/fuzz/fuzz_$target" -set_cover_merge=1 -max_len=$BYTES_MAX -rss_limit_mb=0 "$all" "$build/corpus/$target" \
		>"$build/findings/$target.merge" 2>&1 || true
	# libFuzzer names them by their hash.
	room=$((FILES_MAX - $(find "$corpus" -type f -regextype posix-extended -regex '.*/[0-9a-f]{40}' | wc -l)))
	while read -r _ file; do
		[ -e "$corpus/$(basename "$file")" ] && continue
		[ $room -gt 0 ] || break
		room=$((room - 1))
		cp "$file" "$corpus"
	done < <(find "$all" -type f -printf '%s %p\n' | sort -rn)
	rm -rf "$all"
}

for target in "${targets[@]}"; do
	mkdir -p "$build/corpus/$target"
	log=$build/findings/$target.log
	status=0
	"$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len=4096 -timeout=20 -rss_limit_mb=0 \
		-print_final_stats=1 -artifact_prefix="$build/findings/$target-" "$build/corpus/$target" \
		"tests/fuzz/corpus/$target" >"$log" 2>&1 || status=$?
	executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	coverage=$(sed -n 's/.*cov: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
	echo "$target: ${executed:-no} executions in $seconds s, ${coverage:-no} edges$([ $status -eq 0 ] || echo ", FOUND something: $log")"
	if [ $status -eq 0 ]; then
		add "$target"
	else
		failed=1
	fi
done
exit $failed
