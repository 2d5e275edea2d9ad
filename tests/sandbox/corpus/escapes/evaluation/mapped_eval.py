# effect: leak
# note: eval handed to a C function
def attempt(probe):
    return list(map(eval, [f"open({probe['secret_file']!r}).read()"]))[0]
