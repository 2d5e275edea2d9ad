# effect: escaped
# note: needs: root; back to the daemon's own priority
import os


def attempt(probe):
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, before - 1)
    return "escaped" if os.getpriority(os.PRIO_PROCESS, 0) < before else "none"
