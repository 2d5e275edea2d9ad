# effect: exhaust
import queue


def attempt(probe):
    queue.SimpleQueue().get()
