# effect: write
import zipfile


def attempt(probe):
    with zipfile.ZipFile(probe["write_file"], "w") as made:
        made.writestr("a", "b")
