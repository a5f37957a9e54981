#!/usr/bin/env bash
# Lines and branches that the tests reach, for each folder of daemon, proto and client. Takes about ten minutes.
# Usage: tests/checks/coverage.sh [CTEST-OPTION…]   (build-coverage is made anew)
set -euo pipefail
exec </dev/null
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
tests/packages.sh all
rm -rf build-coverage
# gcov counts atomically, as threads would lose counts; a branch once and not in each inlined copy, where conditions are
# constant; assert is not input's branch.
cmake -S . -B build-coverage -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS="--coverage -fprofile-update=atomic -O1 -fno-inline -DNDEBUG" \
	>build-coverage.log
cmake --build build-coverage -j "$(nproc)" >>build-coverage.log
mv build-coverage.log build-coverage/build.log
# Programs of other uids count, too.
find build-coverage -type d -exec chmod a+rwx {} +
umask 0
# Without memory the counts are not written at the end either, of which a daemon dies (fault_calls).
without='deploy_packages|static|^abi_|fault_calls'
ctest --test-dir build-coverage -L 'unit|integration|conformance' -j "$(nproc)" -E "$without" --timeout 600 "$@" |
	tail -n 5
/usr/bin/python3 -B tests/checks/coverage.py build-coverage
