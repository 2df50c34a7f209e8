-- The settings of the queue (defaults as in model.QueueSettings), and the refusal of a store that is too new: a release
-- works beside the next one, so that services can be upgraded one by one, and never beside the one after that.
-- include: base
local SCHEMA = 1
local cfg = {
  strict_bands = 1,
  aging_ms = 60000,
  max_attempts = 8,
  backoff_base_ms = 10000,
  backoff_cap_ms = 900000,
  half_open_ms = 21600000,
  strict_in_row = 8,
  slots = 0,
}
do
  local names = {'schema', 'strict_bands', 'aging_ms', 'max_attempts', 'backoff_base_ms', 'backoff_cap_ms', 'half_open_ms',
    'strict_in_row', 'slots', 'paused'}
  local values = call('HMGET', CFG, unpack(names))
  for i = 1, #names - 1 do
    if values[i] then cfg[names[i]] = tonumber(values[i]) end
  end
  -- The digits of the paused bands; `all` pauses the queue.
  cfg.paused = values[#names] or ''
end
if cfg.schema and cfg.schema > SCHEMA + 1 then
  return redis.error_reply('LWSCHEMA ' .. int(cfg.schema) .. ' ' .. int(SCHEMA))
end
-- include: time
local now_ms = math.floor(now_us / 1000)
