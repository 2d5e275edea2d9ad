# effect: escaped
import concurrent.futures
import multiprocessing


def attempt(probe):
    fork = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=fork) as pool:
        return "escaped" if pool.submit(len, "abc").result(3) == 3 else "none"
