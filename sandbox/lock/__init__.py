"""The lock of a worker process: seccomp, Landlock and limits.

* `lockdown`: the steps of the lock, in their order.
* `seccomp`: the filter of system calls.
* `landlock`: no files and no TCP, by the kernel.
"""
