#!lua
--[[
  forget_refusals: forgets what is remembered of the refused files of partitions, because a person asks for another
  attempt. Repeating it changes nothing.

  KEYS[1]  prefix of the queue
  ARGV[1]  table
  ARGV[2..]  each partition

  Output: 1
]]
-- include: refusals
for i = 2, #ARGV do set_refusals(ARGV[1], ARGV[i], '') end
return 1
