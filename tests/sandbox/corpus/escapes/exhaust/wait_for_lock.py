# effect: exhaust
import threading


def attempt(probe):
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
