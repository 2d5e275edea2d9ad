"""The language layer: what a half's source may say, and what it meets when it runs.

It is the first fence and the source of good messages; the locked process is the
boundary (SANDBOX.md, Layers 1 and 2). `policy` compiles a half, and
`sandbox.worker.guards` holds what it meets; everything here runs in workers only.
"""
