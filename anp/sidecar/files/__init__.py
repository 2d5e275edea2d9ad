"""Files of tasks, from disk to disk and never whole in memory.

* `sealed_file`: One file on disk as encrypted blocks, written and read block by block.
* `spool`: The files that are kept here, and the room that they may have.
* `transfers`: Files on their way from and to peers, piece by piece.
* `call_folder`: The folder of one call, with its files in clear for the owner's code;
  plain names of files, made of those that peers give.
"""
