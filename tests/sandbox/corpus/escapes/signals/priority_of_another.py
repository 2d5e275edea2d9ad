# effect: signal
import os


def attempt(probe):
    os.setpriority(os.PRIO_PROCESS, probe["victim"], 19)
