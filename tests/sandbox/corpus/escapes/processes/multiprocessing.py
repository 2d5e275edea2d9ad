# effect: escaped
import multiprocessing


def attempt(probe):
    made = multiprocessing.get_context("fork").Process(target=len, args=("",))
    made.start()
    made.join()
    return "escaped" if made.exitcode == 0 else "none"
