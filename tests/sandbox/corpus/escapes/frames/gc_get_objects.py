# effect: leak
import gc


def attempt(probe):
    gc.unfreeze()
    for found in gc.get_objects():
        if type(found) is dict and "environ" in found and "_wrap_close" in found:
            return found["environ"][probe["env"]]
