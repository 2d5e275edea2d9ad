# effect: escaped
import os


def attempt(probe):
    return "escaped" if os.stat(probe["secret_file"]).st_size > 0 else "none"
