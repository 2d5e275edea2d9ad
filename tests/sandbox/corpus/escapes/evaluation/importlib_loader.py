# effect: leak
# note: a loader made by hand
import importlib.machinery


def attempt(probe):
    loader = importlib.machinery.SourceFileLoader("x", probe["secret_file"])
    return loader.get_data(probe["secret_file"])
