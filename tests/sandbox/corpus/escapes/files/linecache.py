# effect: leak
import linecache


def attempt(probe):
    return linecache.getlines(probe["secret_file"])
