# effect: write
# note: the interpreter itself writes to a file
import faulthandler


def attempt(probe):
    with open(probe["write_file"], "w") as file:
        faulthandler.dump_traceback(file)
