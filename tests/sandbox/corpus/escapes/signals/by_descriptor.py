# effect: signal
# note: pidfd_send_signal, which filters of kill miss
import os
import signal


def attempt(probe):
    handle = os.pidfd_open(probe["victim"])
    signal.pidfd_send_signal(handle, signal.SIGKILL)
