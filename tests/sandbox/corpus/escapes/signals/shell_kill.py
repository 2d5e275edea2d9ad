# effect: signal
import subprocess


def attempt(probe):
    subprocess.run(["/bin/sh", "-c", f"kill -9 {probe['victim']}"], check=True)
