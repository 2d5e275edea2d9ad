# effect: signal
# note: F_NOTIFY: a signal when a folder changes
import fcntl
import os


def attempt(probe):
    folder = os.open(probe["folder"], os.O_RDONLY)
    fcntl.fcntl(folder, fcntl.F_SETOWN, probe["victim"])
    fcntl.fcntl(folder, fcntl.F_NOTIFY, fcntl.DN_CREATE)
    open(probe["write_file"], "w").close()
