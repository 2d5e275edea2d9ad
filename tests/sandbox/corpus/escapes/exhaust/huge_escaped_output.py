# effect: exhaust
# note: grows sixfold when written as JSON
def attempt(probe):
    return '\x01' * 17_000_000
