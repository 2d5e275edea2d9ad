# effect: escaped
# note: a handler of its own
import signal


def attempt(probe):
    found = []
    signal.signal(signal.SIGUSR1, lambda number, frame: found.append(number))
    signal.raise_signal(signal.SIGUSR1)
    return "escaped" if found else "none"
