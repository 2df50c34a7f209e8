#!lua flags=no-writes
--[[
  history: a page of finished runs, newest first.

  KEYS[1]  prefix of the queue
  ARGV[1]  entry before which to begin, "" for the newest
  ARGV[2]  limit

  Output: list of {entry, {field, value, ...}}
]]
-- include: config
local from = ARGV[1] == '' and '+' or '(' .. ARGV[1]
return call('XREVRANGE', RUNS, from, '-', 'COUNT', ARGV[2])
