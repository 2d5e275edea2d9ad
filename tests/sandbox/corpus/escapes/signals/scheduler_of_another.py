# effect: signal
import os


def attempt(probe):
    os.sched_setscheduler(probe["victim"], os.SCHED_IDLE, os.sched_param(0))
