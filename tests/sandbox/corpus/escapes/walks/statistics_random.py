# effect: leak
import statistics


def attempt(probe):
    return statistics.random._os.environ[probe["env"]]
