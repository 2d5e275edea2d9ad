# effect: exhaust
# note: Python 3.11 and 3.12: code that the compiler would not make
def attempt(probe):
    code = attempt.__code__.replace(co_code=bytes([100, 255]) * 50, co_consts=())
    return type(attempt)(code, {})(probe)
