# effect: signal
# note: a lease on a file tells its owner
import fcntl
import os


def attempt(probe):
    made = os.open(probe["write_file"], os.O_CREAT | os.O_RDONLY)
    fcntl.fcntl(made, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    fcntl.fcntl(made, fcntl.F_SETOWN, probe["victim"])
    try:
        os.open(probe["write_file"], os.O_WRONLY | os.O_NONBLOCK)
    except BlockingIOError:
        return "broken"
