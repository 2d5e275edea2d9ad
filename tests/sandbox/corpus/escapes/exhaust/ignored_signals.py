# effect: exhaust
# note: no signal ends it but SIGKILL
import signal


def attempt(probe):
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            continue
    while True:
        pass
