# effect: write
import pty


def attempt(probe):
    pty.spawn(["/bin/sh", "-c", f": > '{probe['write_file']}'"], lambda fd: b"")
