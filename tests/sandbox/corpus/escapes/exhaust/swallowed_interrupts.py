# effect: exhaust
# note: catches whatever is thrown into it
def attempt(probe):
    while True:
        try:
            while True:
                pass
        except BaseException:
            continue
