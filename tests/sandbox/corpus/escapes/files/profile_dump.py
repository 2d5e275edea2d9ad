# effect: write
import cProfile


def attempt(probe):
    made = cProfile.Profile()
    made.runcall(len, "")
    made.dump_stats(probe["write_file"])
