#!/usr/bin/env bash
# Installs what benches are measured beside, from Debian's own packages; nothing where all is there. A bench without
# them runs all the same, and says what is missing. As root, or with sudo. Usage: tests/bench/packages.sh
set -euo pipefail
exec "$(dirname "$0")/../packages.sh" libdnnl-dev libxnnpack-dev libpthreadpool-dev redis-server
