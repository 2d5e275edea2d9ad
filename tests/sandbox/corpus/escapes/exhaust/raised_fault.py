# effect: exhaust
import signal


def attempt(probe):
    signal.raise_signal(signal.SIGSEGV)
