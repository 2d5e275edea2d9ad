# effect: escaped
# note: a thread that acts after the answer
import threading


def attempt(probe):
    found = threading.Event()
    threading.Timer(0.01, found.set).start()
    return "escaped" if found.wait(2) else "none"
