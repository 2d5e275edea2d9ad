# effect: leak
import calendar


def attempt(probe):
    return calendar.sys.modules["os"].environ[probe["env"]]
