# effect: signal
# note: a group by a negative pid
import os
import signal


def attempt(probe):
    os.kill(-probe["victim"], signal.SIGTERM)
