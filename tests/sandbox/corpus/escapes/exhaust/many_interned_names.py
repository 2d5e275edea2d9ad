# effect: exhaust
# note: attributes that stay in a table
def attempt(probe):
    holder = lambda: 0
    for index in range(10**9):
        setattr(holder, 'x' * 100 + str(index), index)
