# effect: exhaust
# note: the time of the daemon's answer does not count, the rest does
def attempt(probe):
    yield call('look_up', None)
    while True:
        pass
