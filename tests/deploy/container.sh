#!/bin/sh
# Builds the image of deploy/container on a root of Debian, and runs it: a daemon that
# becomes ready, says that it is well, and ends. Nothing is fetched but Debian's packages
# and those of Python. container.sh FOLDER: for root and images (about 1 GB).
set -eu
work=$1
[ "$(id -u)" = 0 ] || { echo "container: this takes root" >&2; exit 1; }
for tool in buildah debootstrap crun; do
    command -v "$tool" > /dev/null && continue
    apt-get -qq update > /dev/null 2>&1 &&
        DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
            "$tool" > /dev/null 2>&1 || {
        echo "container: $tool is missing; run: apt-get install buildah debootstrap crun" >&2
        exit 1
    }
done
mkdir -p "$work"
work=$(cd "$work" && pwd)
export BUILDAH_ISOLATION=chroot
images() {
    command=$1; shift
    buildah --root "$work/images" --runroot "$work/run" --storage-driver vfs "$command" "$@"
}
base=localhost/anpd-base
if ! images inspect "$base" > /dev/null 2>&1; then
    rm -rf "$work/root"
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates \
        "${SUITE:-bookworm}" "$work/root" > "$work/log" 2>&1 || { tail -5 "$work/log"; exit 1; }
    id=$(images from scratch)
    images add -q "$id" "$work/root" / > /dev/null
    images commit -q --rm "$id" "$base" > /dev/null
    rm -rf "$work/root"
fi
# What this machine needs to reach packages: certificates, and pip's settings.
set -- --volume /etc/ssl/certs:/etc/ssl/certs:ro
[ ! -f /etc/pip.conf ] || set -- "$@" --volume /etc/pip.conf:/etc/pip.conf:ro
images build --format docker --network host "$@" --build-arg BASE="$base" \
    -f deploy/container/Containerfile -t localhost/anpd . > "$work/log" 2>&1 ||
    { tail -20 "$work/log"; exit 1; }
id=$(images from localhost/anpd)
trap 'images rm "$id" > /dev/null' EXIT
images run "$id" -- sh -eu -c '
    test "$(id -u)" = 10001
    anpd --version
    anpd up --background --port 8765 > /dev/null
    anpd health
    anpd stop > /dev/null'
echo "container: built, ran as 10001, was well, and stopped"
