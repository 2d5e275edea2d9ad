# effect: signal
# note: marks another process as the first to go when memory ends
def attempt(probe):
    with open(f"/proc/{probe['victim']}/oom_score_adj", "w") as file:
        file.write("1000")
