#!/usr/bin/env bash
# Installs what benches are measured beside, from Debian's own packages; nothing where all is there. A bench without
# them runs all the same, and says what is missing. As root, or with sudo. Usage: tests/bench/packages.sh
set -euo pipefail
exec </dev/null

packages=(libdnnl-dev libxnnpack-dev libpthreadpool-dev redis-server)

missing=()
for package in "${packages[@]}"; do
	if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
		missing+=("$package")
	fi
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "packages: not root, and there is no sudo; missing: ${missing[*]}" >&2
		exit 1
	fi
	as_root=(sudo)
fi
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
echo "packages: installing ${missing[*]}"
"${apt[@]}" update
"${apt[@]}" install --no-install-recommends "${missing[@]}"
