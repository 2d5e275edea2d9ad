# effect: exhaust
def attempt(probe):
    width = 10**11
    return len(f"{'x':>{width}}")
