#!lua
--[[
  configure: the queue's settings are written; weights and what else lives in the hash stay.

  KEYS[1]  prefix of the queue
  ARGV[1]  strict bands       ARGV[2]  ageing ms          ARGV[3]  maximum attempts
  ARGV[4]  back-off base ms   ARGV[5]  back-off cap ms    ARGV[6]  half-open ms
  ARGV[7]  strict in a row    ARGV[8]  slots

  Output: 1
]]
-- include: config
call('HSET', CFG, 'schema', SCHEMA, 'strict_bands', ARGV[1], 'aging_ms', ARGV[2], 'max_attempts', ARGV[3],
  'backoff_base_ms', ARGV[4], 'backoff_cap_ms', ARGV[5], 'half_open_ms', ARGV[6],
  'strict_in_row', ARGV[7], 'slots', ARGV[8])
return 1
