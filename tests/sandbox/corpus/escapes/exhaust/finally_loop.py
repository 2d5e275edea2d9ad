# effect: exhaust
def attempt(probe):
    try:
        1 / 0
    finally:
        while True:
            pass
