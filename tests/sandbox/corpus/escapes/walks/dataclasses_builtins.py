# effect: leak
# note: Python 3.11
import dataclasses


def attempt(probe):
    return dataclasses.builtins.open(probe["secret_file"]).read()
