# effect: leak
import builtins


def attempt(probe):
    return builtins.open(probe["secret_file"]).read()
