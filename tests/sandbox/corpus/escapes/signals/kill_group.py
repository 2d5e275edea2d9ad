# effect: signal
import os
import signal


def attempt(probe):
    os.killpg(probe["victim"], signal.SIGKILL)
