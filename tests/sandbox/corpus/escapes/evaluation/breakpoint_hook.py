# effect: leak
# note: breakpoint calls what the hook names
import sys


def attempt(probe):
    kept, sys.breakpointhook = sys.breakpointhook, open
    try:
        return breakpoint(probe["secret_file"]).read()
    finally:
        sys.breakpointhook = kept
