#!/usr/bin/env bash
# Installs Debian packages that this machine lacks. As root, or with sudo.
# Usage: tests/packages.sh PURPOSE...    build, demo, test, docs, deb; all is each of them
#        tests/packages.sh PACKAGE...    these packages
# Each of them includes `build`. A build leaves out what it has no packages for, and says so.
set -euo pipefail
exec </dev/null

build=(
	cmake gcc libc6-dev make pkg-config
	libuv1-dev libprotobuf-c-dev protobuf-c-compiler libjansson-dev zlib1g-dev
	uthash-dev # lists, headers only
)
demo=(
	"${build[@]}"
	protobuf-compiler python3 python3-protobuf python3-numpy # the Python package
	libedit-dev                                              # the prompt of npumemctl
)
test=(
	"${demo[@]}"
	check                         # unit tests
	ninja-build                   # builds of tests/run.sh
	abigail-tools binutils        # the library's ABI
	mypy                          # the Python package's types
	python3-onnx libonnx-testdata # the importer of ONNX models, and ONNX's own tests
	openssh-server openssh-client # sessions over ssh
	zsh                           # completion in zsh
	chromium                      # the report's page; half of all that is fetched (166 MB)
)
docs=("${build[@]}" python3 scdoc man-db groff) # manual pages, and reading them
deb=("${build[@]}" adduser dpkg-dev lintian)    # Debian packages

packages=()
for word in "$@"; do
	case $word in
	build | demo | test | docs | deb)
		declare -n list=$word
		packages+=("${list[@]}")
		;;
	all) packages+=("${test[@]}" "${docs[@]}" "${deb[@]}") ;;
	*) packages+=("$word") ;;
	esac
	if [[ $word =~ ^(all|test)$ ]] && ! command -v systemd-analyze >/dev/null; then
		echo "packages: no systemd here, so its units will NOT be checked; tests/packages.sh systemd installs it" >&2
	fi
done
if [ ${#packages[@]} -eq 0 ]; then
	sed -n 's/^# //; 3,4p' "$0" >&2
	exit 2
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
