# effect: leak
import timeit


def attempt(probe):
    scope = {"path": probe["secret_file"], "found": []}
    timeit.timeit("found.append(open(path).read())", number=1, globals=scope)
    return scope["found"][0]
