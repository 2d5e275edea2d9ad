# effect: write
# note: the grandchild writes when its parent is gone
import os
import time


def attempt(probe):
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            time.sleep(0.05)
            open(probe["write_file"], "w").close()
        os._exit(0)
    os.waitpid(child, 0)
