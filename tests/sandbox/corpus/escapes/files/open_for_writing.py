# effect: write
def attempt(probe):
    with open(probe["write_file"], "w") as file:
        file.write("x")
