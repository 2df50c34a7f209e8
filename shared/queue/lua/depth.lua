#!lua flags=no-writes
--[[
  depth: how many jobs are in each state, and how long the oldest queued one has been waiting.

  KEYS[1]  prefix of the queue

  Output: {now ms, queued, delayed, leased, quarantined, first_ms of the oldest queued job or ""}
]]
-- include: config
local oldest = call('ZRANGE', QUEUED, 0, 0, 'WITHSCORES')[2]
return {now_ms, call('ZCARD', QUEUED), call('ZCARD', DELAYED), call('ZCARD', LEASES), call('ZCARD', QUARANTINED), oldest or ''}
