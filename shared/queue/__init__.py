"""The reliable priority queue without its I/O: what it knows, its keys, its transitions, and the scripts they run.

It knows jobs, bands, tenants, tables and costs; partitions and facts are opaque text. `transitions` and `reads` return
values that an executor (`decider.store.queue_executor`, `actor.queue_executor`) carries to the server and back.
"""
