# effect: signal
# note: prlimit on another process
import resource


def attempt(probe):
    resource.prlimit(probe["victim"], resource.RLIMIT_NOFILE, (3, 3))
