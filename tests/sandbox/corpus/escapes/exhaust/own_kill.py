# effect: exhaust
import os
import signal


def attempt(probe):
    os.kill(os.getpid(), signal.SIGKILL)
