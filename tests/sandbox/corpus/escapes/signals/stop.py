# effect: signal
import os
import signal


def attempt(probe):
    os.kill(probe["victim"], signal.SIGSTOP)
