# effect: leak
import mmap
import os


def attempt(probe):
    file = os.open(probe["secret_file"], os.O_RDONLY)
    return mmap.mmap(file, 0, prot=mmap.PROT_READ)[:100]
