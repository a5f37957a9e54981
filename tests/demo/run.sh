#!/usr/bin/env bash
# The demo against a built tree: a daemon of its own in a temporary directory; one program that leaves sealed
# weights on the device; two workers per format that share them and run at the same time; then the device and the
# outcome.
# Usage: tests/demo/run.sh BUILD [RESULTS]       RESULTS: a directory that receives every digit's scores, and the report
# of what happened, which is BUILD/demo-report.html else
set -euo pipefail
exec </dev/null

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
	echo "usage: tests/demo/run.sh BUILD [RESULTS]" >&2
	exit 2
fi
model=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/model
build=$(cd "$1" && pwd)
programs=$build/tests/demo
ctl=$build/client/ctl/npumemctl
work=$(mktemp -d)
results=$work
report=$build/demo-report.html
if [ $# -eq 2 ]; then
	results=$(cd "$2" && pwd)
	report=$results/report.html
fi
export NPUMEM_SOCKET=$work/npumem.sock
daemon=
recorder=
workers=()

# stop_daemon: its exit status; 137 where it had to be killed.
stop_daemon() {
	local process=$daemon status=0
	daemon=
	kill "$process" 2>/dev/null || true
	for _ in $(seq 100); do
		kill -0 "$process" 2>/dev/null || break
		sleep 0.1
	done
	kill -KILL "$process" 2>/dev/null || true
	wait "$process" || status=$?
	return "$status"
}

# Ends what this script started, and nothing else.
clean_up() {
	local status=$?
	trap - EXIT
	if [ ${#workers[@]} -gt 0 ]; then
		kill "${workers[@]}" 2>/dev/null || true
	fi
	if [ -n "$recorder" ]; then
		kill "$recorder" 2>/dev/null || true
	fi
	if [ -n "$daemon" ]; then
		stop_daemon || true
	fi
	if [ "$status" -ne 0 ] && [ -e "$work/npumemd.log" ]; then
		cat "$work/npumemd.log" >&2
	fi
	rm -rf "$work"
	exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# wait_until SECONDS PROCESS COMMAND…: false when the time or the process ended first.
wait_until() {
	local tries=$(($1 * 20)) process=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		if [ "$tries" -lt 0 ] || ! kill -0 "$process" 2>/dev/null; then
			return 1
		fi
		sleep 0.05
	done
}

"$build/daemon/npumemd" --socket "$NPUMEM_SOCKET" >"$work/npumemd.log" 2>&1 &
daemon=$!
if ! wait_until 120 "$daemon" "$ctl" info; then
	echo "demo: the daemon does not answer" >&2
	exit 1
fi

# What the device is asked for from here on becomes the report.
"$ctl" record "$work/record" >"$work/record.log" 2>&1 &
recorder=$!
if ! wait_until 120 "$recorder" grep -q recording "$work/record.log"; then
	cat "$work/record.log" >&2
	exit 1
fi

timeout 240 "$programs/demo_load" "$model"

# Every worker opens the weights, takes its own activations, and waits for its standard input to end: they all
# begin when descriptor 9, the only writer of that pipe, is closed.
mkfifo "$work/start"
exec 9<>"$work/start"
runs=()
for format in fx8 fx16; do
	for k in 0 1; do
		run=$format.$k
		runs+=("$run")
		timeout 240 "$programs/demo_classify" "$model" "$format" "$k" 2 "$results/$run" \
			<"$work/start" >"$work/$run.log" 2>&1 9>&- &
		workers+=($!)
	done
done
for i in "${!runs[@]}"; do
	wait_until 30 "${workers[$i]}" grep -q ready "$results/${runs[$i]}" || break
done
exec 9>&-
echo "${#runs[@]} processes share them and classify at the same time:"
failed=0
for i in "${!runs[@]}"; do
	wait "${workers[$i]}" || failed=1
	cat "$work/${runs[$i]}.log"
done
workers=()
[ "$failed" -eq 0 ] || exit 1

"$programs/demo_collect" "$model" "${runs[@]/#/$results/}" >"$work/outcome"
head -n -3 "$work/outcome"
printf '\nnpumemctl map\n'
"$ctl" map
printf '\nnpumemctl ls\n'
"$ctl" ls
printf '\n'
kill -INT "$recorder"
if ! wait "$recorder"; then
	cat "$work/record.log" >&2
	exit 1
fi
recorder=
"$ctl" report "$work/record" "$report" >"$work/report"
printf 'what happened, as a page for a browser: %s\n\n' "$report"
if ! stop_daemon || [ -e "$NPUMEM_SOCKET" ]; then
	echo "demo: the daemon did not end as it should" >&2
	exit 1
fi
tail -n 3 "$work/outcome"
