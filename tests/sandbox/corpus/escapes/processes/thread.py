# effect: escaped
import threading


def attempt(probe):
    found = []
    made = threading.Thread(target=found.append, args=(1,))
    made.start()
    made.join()
    return "escaped" if found else "none"
