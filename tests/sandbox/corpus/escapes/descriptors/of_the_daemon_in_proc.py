# effect: leak
# note: reopened through the daemon's own table
import os


def attempt(probe):
    found, folder = [], f"/proc/{probe['daemon']}/fd"
    for number in os.listdir(folder):
        if int(number) > 2 and "/" in os.readlink(f"{folder}/{number}"):
            found.append(open(f"{folder}/{number}").read(100))
    return found
