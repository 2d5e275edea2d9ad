# effect: write
# note: Python code between fork and exec
import subprocess


def attempt(probe):
    command = f": > '{probe['write_file']}'"
    subprocess.Popen(["/bin/sh", "-c", command], preexec_fn=lambda: None).wait()
