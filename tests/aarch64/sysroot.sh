#!/usr/bin/env bash
# The arm64 packages that npumem is built with, unpacked into a folder: nothing of this machine's own packages changes, and
# root is not needed. Prints the folder's path. It is made once, then reused, and kept until somebody removes it.
# Usage: tests/aarch64/sysroot.sh      in $NPUMEM_SYSROOT (/tmp/npumem-sysroot-UID)
# Where none can be made here it ends with 77 and says why.
set -euo pipefail
exec </dev/null

packages=(libc6-dev libuv1-dev libprotobuf-c-dev libjansson-dev zlib1g-dev libedit-dev uthash-dev check)

cannot() {
	echo "sysroot: $1" >&2
	exit 77
}

for program in aarch64-linux-gnu-gcc qemu-aarch64-static; do
	command -v "$program" >/dev/null ||
		cannot "no $program here: tests/packages.sh gcc-aarch64-linux-gnu qemu-user-static installs it"
done
command -v apt-get >/dev/null || cannot "no apt-get here"

folder=${NPUMEM_SYSROOT:-/tmp/npumem-sysroot-$(id -u)}
mkdir -p -m 0755 "$folder"
# What somebody else made must not be run.
[ -O "$folder" ] && [ ! -L "$folder" ] || cannot "$folder is another user's"
exec 9>"$folder/.lock"
flock 9
tree=$folder/arm64
if [ ! -d "$tree" ]; then
	work=$folder/work
	rm -rf --one-file-system "$work"
	mkdir -p "$work"/{tree,state/lists/partial,cache/archives/partial}
	: >"$work/status"
	apt=(apt-get -q -y -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State="$work/state"
		-o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" -o Debug::NoLocking=1
		-o APT::Sandbox::User="$(id -un)" -o APT::Update::Error-Mode=any)
	"${apt[@]}" update >"$folder/log" 2>&1 &&
		"${apt[@]}" --download-only install --no-install-recommends "${packages[@]}" >>"$folder/log" 2>&1 ||
		cannot "no arm64 packages: $(tail -n 1 "$folder/log")"
	for package in "$work"/cache/archives/*.deb; do
		dpkg-deb -x "$package" "$work/tree"
	done
	mv "$work/tree" "$tree"
	rm -rf --one-file-system "$work"
fi
echo "$tree"
