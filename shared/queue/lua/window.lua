#!lua
--[[
  window: sets the work window of a table; `include/admission.lua` describes the text.

  KEYS[1]  prefix of the queue
  ARGV[1]  table
  ARGV[2]  window, "" for none
  ARGV[3]  window that the table must have for a change, "" for any

  Output: 1 if it was set, else 0
]]
-- include: config
local tbl, window, expected = ARGV[1], ARGV[2], ARGV[3]
if expected ~= '' and call('HGET', WORK_WINDOWS, tbl) ~= expected then return 0 end
if window == '' then call('HDEL', WORK_WINDOWS, tbl) else call('HSET', WORK_WINDOWS, tbl, window) end
return 1
