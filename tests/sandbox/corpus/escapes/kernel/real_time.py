# effect: escaped
# note: SCHED_IDLE is free for all, SCHED_FIFO for root
import os


def attempt(probe):
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    return "escaped" if os.sched_getscheduler(0) == os.SCHED_BATCH else "none"
