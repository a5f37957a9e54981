#!/usr/bin/env bash
# A minimal Debian of this machine's release, in a folder: made by debootstrap once, then reused. Prints its path. Tests use
# it below an overlay, so that it stays as it is.
# Usage: tests/support/rootfs.sh                      the bare one
#        tests/support/rootfs.sh NAME PACKAGE...      one that has these packages, too
# No package starts a service in it; who boots one removes its /usr/sbin/policy-rc.d. Another choice of packages is another NAME.
# Trees are kept in $NPUMEM_ROOTFS (/tmp/npumem-rootfs) until somebody removes them. Where none can be made here it ends
# with 77 and says why.
set -euo pipefail
exec </dev/null

cannot() {
	echo "rootfs: $1" >&2
	exit 77
}

[ "$(id -u)" -eq 0 ] || cannot "a Debian in a folder needs root"
. /etc/os-release

trees=${NPUMEM_ROOTFS:-/tmp/npumem-rootfs}
mkdir -p -m 0755 "$trees"
# What somebody else made must not be run as root.
[ -O "$trees" ] && [ ! -L "$trees" ] || cannot "$trees is not root's own folder"
name=${1:-bare}
[ $# -eq 0 ] || shift
tree=$trees/$VERSION_CODENAME-$name
[ "$name" = bare ] || bare=$("$0") # before the lock, which that takes, too

exec 9>"$trees/.lock"
flock 9

make_bare() {
	local tree=$1 mirror
	command -v debootstrap >/dev/null || cannot "no debootstrap here: tests/packages.sh debootstrap installs it"
	mirror=$(apt-get indextargets --format '$(REPO_URI)' "Release: $VERSION_CODENAME" 'Component: main' \
		'Created-By: Packages' | head -n 1)
	[ -n "$mirror" ] || cannot "apt has no mirror of Debian's $VERSION_CODENAME"
	debootstrap --variant=minbase "$VERSION_CODENAME" "$tree" "$mirror" >"$trees/log" 2>&1 ||
		cannot "debootstrap from $mirror: $(tail -n 1 "$trees/log")"
	# The sources of this machine that Debian signs itself.
	rm -f "$tree/etc/apt/sources.list"
	{ grep -ls debian-archive-keyring /etc/apt/sources.list.d/*.sources || true; } | xargs -r cp -t "$tree/etc/apt/sources.list.d"
	[ -n "$(ls "$tree/etc/apt/sources.list.d")" ] ||
		echo "deb $mirror $VERSION_CODENAME main" >"$tree/etc/apt/sources.list"
	# Nothing starts in a folder.
	printf '#!/bin/sh\nexit 101\n' >"$tree/usr/sbin/policy-rc.d"
	chmod 755 "$tree/usr/sbin/policy-rc.d"
}

if [ ! -d "$tree" ]; then
	rm -rf --one-file-system "$tree.new"
	if [ "$name" = bare ]; then
		make_bare "$tree.new"
	else
		cp -a "$bare" "$tree.new"
		cp -L /etc/resolv.conf "$tree.new/etc/resolv.conf"
		chroot "$tree.new" env DEBIAN_FRONTEND=noninteractive bash -ec '
			apt-get -q -o APT::Update::Error-Mode=any update
			apt-get -q -y --no-install-recommends install "$@"
			apt-get clean' - "$@" >"$trees/log" 2>&1 || cannot "installing $*: $(tail -n 1 "$trees/log")"
	fi
	mv "$tree.new" "$tree"
fi
echo "$tree"
