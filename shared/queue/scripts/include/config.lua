-- The settings of the queue (defaults as in model.QueueSettings), and the refusal of a store written by a newer release.
-- include: base
local SCHEMA = 1
local cfg = {
  strict_bands = 1,
  aging_ms = 60000,
  max_attempts = 8,
  backoff_base_ms = 10000,
  backoff_cap_ms = 900000,
  half_open_ms = 21600000,
}
do
  local names = {'schema', 'strict_bands', 'aging_ms', 'max_attempts', 'backoff_base_ms', 'backoff_cap_ms', 'half_open_ms'}
  local values = call('HMGET', CFG, unpack(names))
  for i, name in ipairs(names) do
    if values[i] then cfg[name] = tonumber(values[i]) end
  end
end
if cfg.schema and cfg.schema > SCHEMA then
  return redis.error_reply('LWSCHEMA ' .. int(cfg.schema) .. ' ' .. int(SCHEMA))
end
-- include: time
local now_ms = math.floor(now_us / 1000)
