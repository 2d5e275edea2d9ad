"""The lock of a worker process: seccomp, Landlock and limits."""
