# effect: exhaust
import signal


def attempt(probe):
    signal.pause()
