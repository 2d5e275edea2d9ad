# effect: write
def attempt(probe):
    with open(probe["secret_file"], "r+") as file:
        file.write("x")
