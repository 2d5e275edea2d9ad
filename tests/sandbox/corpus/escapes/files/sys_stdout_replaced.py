# effect: write
# note: print writes wherever sys.stdout leads
import sys


def attempt(probe):
    kept, sys.stdout = sys.stdout, open(probe["write_file"], "w")
    print("x", flush=True)
    sys.stdout = kept
