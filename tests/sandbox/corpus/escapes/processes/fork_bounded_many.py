# effect: escaped
# note: twenty at once, no more
import os


def attempt(probe):
    children = []
    for _ in range(20):
        child = os.fork()
        if child == 0:
            os._exit(7)
        children.append(child)
    ended = [os.waitpid(child, 0)[1] >> 8 for child in children]
    return "escaped" if ended == [7] * 20 else "none"
