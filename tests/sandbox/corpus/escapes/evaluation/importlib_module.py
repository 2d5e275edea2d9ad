# effect: leak
import importlib


def attempt(probe):
    return importlib.import_module("os").environ[probe["env"]]
