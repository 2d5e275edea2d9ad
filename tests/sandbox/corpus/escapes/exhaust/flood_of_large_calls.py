# effect: exhaust
# note: each with a megabyte
def attempt(probe):
    while True:
        yield call('look_up', 'x' * 1_000_000)
