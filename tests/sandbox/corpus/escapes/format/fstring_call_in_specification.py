# effect: leak
def attempt(probe):
    return f"{'':{open(probe['secret_file']).read()}}"
