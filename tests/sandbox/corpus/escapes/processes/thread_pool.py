# effect: escaped
import concurrent.futures


def attempt(probe):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return "escaped" if pool.submit(len, "abc").result(2) == 3 else "none"
