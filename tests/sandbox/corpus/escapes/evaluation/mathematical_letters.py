# effect: leak
def attempt(probe):
    return 𝐞𝐯𝐚𝐥("open(path).read()", {"path": probe["secret_file"]})
