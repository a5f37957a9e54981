#!/usr/bin/env bash
# Installs what building and testing need and this machine lacks, from Debian's own packages; nothing where all is
# there. As root, or with sudo. Usage: tests/packages.sh, or tests/packages.sh PACKAGE... for these instead
set -euo pipefail
exec </dev/null

packages=(
	cmake gcc libc6-dev make pkg-config
	libuv1-dev libprotobuf-c-dev protobuf-c-compiler libjansson-dev zlib1g-dev
	uthash-dev                                             # lists, headers only
	check                                                  # unit tests
	abigail-tools binutils                                 # the library's ABI
	protobuf-compiler python3 python3-protobuf python3-numpy # integration tests and the demo
	mypy                                                   # the Python package's types
	python3-onnx libonnx-testdata                          # the importer of ONNX models, and ONNX's own tests
	libedit-dev                                            # the prompt of npumemctl
	scdoc man-db groff                                     # manual pages, and reading them
	adduser dpkg-dev lintian                               # Debian packages
	openssh-server openssh-client                          # sessions over ssh
	zsh                                                    # its completion
	chromium                                               # the report's page; half of all that is fetched (166 MB)
)
if [ $# -gt 0 ]; then
	packages=("$@")
elif ! command -v systemd-analyze >/dev/null; then
	echo "packages: no systemd here, so its units will NOT be checked; tests/packages.sh systemd installs it" >&2
fi

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
