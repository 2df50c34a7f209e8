"""The reliable priority queue without its I/O: its types, keys, commands and scripts.

It knows jobs, bands, tenants, tables and costs; partitions and payload are opaque text. `commands` and `queries` return
values that an executor (`decider.store.redis.queue_executor`, `actor.queue_executor`) sends to the server and decodes.
"""
