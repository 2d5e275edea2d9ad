# effect: exhaust
import signal


def attempt(probe):
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    while True:
        pass
