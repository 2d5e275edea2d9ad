# effect: write
# note: the loader maps the program, which is never executed itself
import os
import platform


def attempt(probe):
    loader = {
        "x86_64": "/lib64/ld-linux-x86-64.so.2",
        "aarch64": "/lib/ld-linux-aarch64.so.1",
    }[platform.machine()]
    os.execv(loader, [loader, "/bin/sh", "-c", f": > '{probe['write_file']}'"])
