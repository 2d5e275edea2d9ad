#!/bin/sh
# Runs a command in this folder as an ordinary user: as it is when we are one, else as
# nobody without capabilities, in a mount namespace of its own in which what lies in
# root's home (an interpreter, this folder) can be read.
set -eu
[ "$(id -u)" = 0 ] || exec "$@"
for tool in unshare setpriv; do
    command -v "$tool" >/dev/null || {
        echo "as_nobody.sh: $tool is missing (package util-linux)" >&2
        exit 1
    }
done
base=$(.venv/bin/python -c 'import sys; print(sys.base_prefix)')
export base here="$PWD" home="$HOME"
exec unshare -m sh -eu -c '
    case "$base:$here" in *"$home"/*)
        mount --rbind "$home" /mnt
        mount -t tmpfs -o mode=755 tmpfs "$home"
        for path in "$base" "$here"; do
            case "$path" in "$home"/*)
                mkdir -p "$path"
                mount --bind "/mnt/${path#"$home"/}" "$path";;
            esac
        done
        umount -l /mnt;;
    esac
    cd "$here"
    exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all \
        --bounding-set=-all env -i PATH=/usr/bin:/bin HOME=/tmp \
        PYTHONDONTWRITEBYTECODE=1 "$@"' sh "$@"
