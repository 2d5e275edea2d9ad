# effect: write
# note: runs a file that it wrote
import runpy


def attempt(probe):
    with open(probe["write_file"], "w") as file:
        file.write("done = 1")
    return runpy.run_path(probe["write_file"])["done"]
