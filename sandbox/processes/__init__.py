"""The fork server and the processes of workers."""
