# effect: leak
import io
import tarfile


def attempt(probe):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        archive.add(probe["secret_file"])
    return made.getvalue()
