# effect: write
import shutil


def attempt(probe):
    shutil.copyfile(probe["secret_file"], probe["write_file"])
