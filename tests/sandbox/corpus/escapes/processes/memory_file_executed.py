# effect: write
# note: a program that never was a file
import os


def attempt(probe):
    made = os.memfd_create("x")
    with open("/bin/sh", "rb") as program:
        while part := program.read(65_536):
            os.write(made, part)
    command = f": > '{probe['write_file']}'"
    os.execve(made, ["sh", "-c", command], {})
