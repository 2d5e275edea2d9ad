# effect: escaped
import _thread


def attempt(probe):
    lock = _thread.allocate_lock()
    lock.acquire()
    _thread.start_new_thread(lock.release, ())
    return "escaped" if lock.acquire(timeout=2) else "none"
