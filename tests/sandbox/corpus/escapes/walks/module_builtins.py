# effect: leak
import heapq


def attempt(probe):
    return heapq.__builtins__["open"](probe["secret_file"]).read()
