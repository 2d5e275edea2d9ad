# effect: exhaust
def attempt(probe):
    while True:
        print('x' * 1000)
