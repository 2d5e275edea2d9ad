#!/bin/sh
# Installs wheel and sdist of a release with pipx and with uv, each into folders of its
# own, starts what was installed, and verifies the release as SECURITY.md says.
# trial.sh FOLDER BIN: the release, and the folder with the programs pipx and uv.
set -eu
release=$(cd "$1" && pwd)
bin=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Tools that bring certificates of their own take those of this machine.
export UV_NATIVE_TLS=1 UV_SYSTEM_CERTS=1 UV_NO_PROGRESS=1 UV_PYTHON_DOWNLOADS=never

cd "$release"
openssl pkeyutl -verify -pubin -inkey release.pub -rawin -in SHA256SUMS \
    -sigfile SHA256SUMS.sig > /dev/null
sha256sum --quiet -c SHA256SUMS
echo "verified: $(wc -l < SHA256SUMS) files, their checksums and the signature"

try() {
    ANPD_HOME="$work/home-$1" "$work/$1/bin/anpd" --version
    ANPD_HOME="$work/home-$1" "$work/$1/bin/anpd" up --background --port 0 > "$work/up"
    ANPD_HOME="$work/home-$1" "$work/$1/bin/anpd" health > /dev/null
    ANPD_HOME="$work/home-$1" "$work/$1/bin/anpd" stop > /dev/null
    missing=$(ANPD_HOME="$work/home-$1" "$work/$1/bin/anpd" mcp 2>&1) || true
    case "$missing" in
        *"run: $2 "*"anpd[mcp]"*) ;;
        *) echo "trial: the line for an extra is not one of $2: $missing" >&2; exit 1;;
    esac
    echo "$1: installed, ran, and names its extras"
}

for file in anpd-*.whl anpd-*.tar.gz; do
    kind=${file##*.}
    PIPX_HOME="$work/pipx" PIPX_BIN_DIR="$work/pipx-$kind/bin" PIPX_MAN_DIR="$work/man" \
        "$bin/pipx" install --force "./$file" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    try "pipx-$kind" "pipx install"
    UV_TOOL_DIR="$work/uv/tools" UV_TOOL_BIN_DIR="$work/uv-$kind/bin" \
        "$bin/uv" tool install --force "./$file" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    try "uv-$kind" "uv tool"
done
