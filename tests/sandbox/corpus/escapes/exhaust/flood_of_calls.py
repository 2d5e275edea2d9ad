# effect: exhaust
# note: capability calls without end
def attempt(probe):
    while True:
        yield call('look_up', None)
