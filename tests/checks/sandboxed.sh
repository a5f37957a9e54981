#!/usr/bin/env bash
# The integration tests with every daemon under the system call filter of its unit. Takes some minutes.
# Usage: tests/checks/sandboxed.sh [BUILD] [CTEST-OPTION…]
set -euo pipefail
exec </dev/null
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=$(realpath "${1:-build}")
shift || true

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
NPUMEM_BUILD=$build /usr/bin/python3 -B tests/support/confine.py --make "$folder/filter"
cp tests/support/confine.py "$folder"
chmod 644 "$folder"/*
# What starts daemons of its own otherwise, or asks systemd; fault_calls would count what Python calls before npumemd.
without='deploy|static|completion|packages|includes|fault_calls'
NPUMEM_CONFINED=$folder ctest --test-dir "$build" -L integration -LE '^long$' -E "$without" --output-on-failure --timeout 600 "$@"
