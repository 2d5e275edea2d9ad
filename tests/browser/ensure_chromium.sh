#!/bin/sh
# Makes sure that there is a browser: installs Debian's chromium when it may.
set -eu
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" > /dev/null; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    log=$(mktemp)
    if apt-get update -qq > "$log" 2>&1 &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            chromium fonts-dejavu-core fonts-droid-fallback >> "$log" 2>&1; then
        rm -f "$log"
        exit 0
    fi
    echo "test-browser: chromium cannot be installed, see $log" >&2
    exit 1
fi
echo "test-browser: chromium is missing; run: apt-get install chromium fonts-dejavu-core fonts-droid-fallback" >&2
exit 1
