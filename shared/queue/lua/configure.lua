#!lua
--[[
  configure: writes the given settings; all other fields of the hash stay. The schema version is written if it is absent or
  lower, and never lowered: a newer release may have written it.

  KEYS[1]  prefix of the queue
  ARGV[1..]  name and value of each setting that is given

  Output: 1, or {back-off base ms, back-off cap ms} if the base would be above the cap, and nothing was written
]]
-- include: config
local given = {}
for i = 1, #ARGV, 2 do given[ARGV[i]] = tonumber(ARGV[i + 1]) end
if given.backoff_base_ms or given.backoff_cap_ms then
  local base = given.backoff_base_ms or setting('backoff_base_ms')
  local cap = given.backoff_cap_ms or setting('backoff_cap_ms')
  if base > cap then return {base, cap} end
end
local schema = tonumber(call('HGET', CONFIG, 'schema'))
if not schema or schema < SCHEMA then call('HSET', CONFIG, 'schema', SCHEMA) end
if #ARGV > 0 then call('HSET', CONFIG, unpack(ARGV)) end
return 1
