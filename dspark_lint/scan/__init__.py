"""The values of tensors: all data of a file streamed once (``--deep``), and small integer tables.

Nothing here judges or prints; statistics and facts come out, rules make findings of them. What is wanted is imported
from its module, so that a check without ``--deep`` pays for `tables` at most:

`scanner`   scan_file: the statistics of every tensor of a file
`tally`     TensorSlice and TensorStats: what is asked and what is answered
`tables`    table_facts: d2t and t2d
`progress`  Progress: a bar on a terminal
"""
