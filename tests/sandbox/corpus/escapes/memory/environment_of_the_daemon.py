# effect: leak
def attempt(probe):
    return open(f"/proc/{probe['daemon']}/environ").read()
