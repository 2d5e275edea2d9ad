"""The language layer: the static policy for a half's source, and its facades.

It is the first fence and gives good messages; the locked process is the boundary
(SANDBOX.md, Layers 1 and 2). `policy` compiles a half, and `sandbox.worker.guards` has
the objects that the half uses at run time. All of it runs in workers only.
"""
