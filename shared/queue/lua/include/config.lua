-- The settings of the queue (defaults as in settings.SETTINGS), and the schema check: a release works beside the next one,
-- so that services can be upgraded one by one, and never beside the one after that.
-- include: base
local SCHEMA = 2
local DEFAULTS = {
  strict_bands = 1,
  aging_ms = 7200000,
  max_attempts = 8,
  backoff_base_ms = 10000,
  backoff_cap_ms = 900000,
  half_open_ms = 21600000,
  strict_in_row = 8,
  slots = 0,
  actors = 1,
}

-- Settings that nearly every script needs; `paused` holds the digits of the paused bands, `all` pauses the queue.
local strict_bands, strict_in_row, aging_ms, paused

-- Settings that few scripts need are read on demand.
local function setting(name) return tonumber(call('HGET', CONFIG, name)) or DEFAULTS[name] end

-- Weights of a band, a tenant and a table, and limits of the tenant and the table. Those of tables are the queue's, so that
-- they stay when a table moves to another group; the others are the group's own.
local function settings_of_path(band, tenant, tbl)
  local of_group = {'weight:band|' .. band, 'weight:tenant|' .. tenant, 'limit:tenant|' .. tenant}
  local of_table = {'weight:table|' .. tbl, 'limit:table|' .. tbl}
  if P == S then
    return call('HMGET', CONFIG, of_group[1], of_group[2], of_table[1], of_group[3], of_table[2])
  end
  local group, own = call('HMGET', CONFIG, unpack(of_group)), call('HMGET', TABLES_CONFIG, unpack(of_table))
  return {group[1], group[2], own[1], group[3], own[2]}
end

local function begin_call(prefix)
  call = redis.call
  name_keys(prefix)
  for i = 1, #on_call_start do on_call_start[i]() end
  local found = call('HMGET', CONFIG, 'schema', 'strict_bands', 'strict_in_row', 'aging_ms', 'paused')
  local schema = tonumber(found[1])
  if schema and schema > SCHEMA + 1 then
    error(redis.error_reply('LWSCHEMA ' .. int(schema) .. ' ' .. int(SCHEMA)))
  end
  strict_bands = tonumber(found[2]) or DEFAULTS.strict_bands
  strict_in_row = tonumber(found[3]) or DEFAULTS.strict_in_row
  aging_ms = tonumber(found[4]) or DEFAULTS.aging_ms
  paused = found[5] or ''
  now_us = clock_us()
  now_ms = math.floor(now_us / 1000)
end
