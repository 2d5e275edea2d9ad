"""The lock of a worker process: seccomp, Landlock and limits.

* `lockdown`: the steps of the lock, in their order; no files and no TCP, by the kernel.
* `seccomp`: the filter of system calls.
"""
