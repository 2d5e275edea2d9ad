# effect: exhaust
# note: goes on after each failure
def attempt(probe):
    while True:
        try:
            yield call('look_up', None)
        except Exception:
            continue
