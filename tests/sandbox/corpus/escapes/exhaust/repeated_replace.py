# effect: exhaust
# note: each step multiplies
def attempt(probe):
    text = 'ab'
    for _ in range(40):
        text = text.replace('a', 'ab' * 10)
    return len(text)
