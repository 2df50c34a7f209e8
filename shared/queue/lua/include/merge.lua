-- Merging requests is commutative, associative and idempotent, so that order and repetition of events change nothing:
-- least band, priority and arrival, greatest extent, any time; the rest from the request with the greatest (version, precedence,
-- payload, tenant, cost).
-- include: job

-- Lua compares strings by the server's locale; bytes are the same everywhere.
local function bytes_after(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = a:byte(i), b:byte(i)
    if x ~= y then return x > y end
  end
  return #a > #b
end

local function supersedes(new, old)
  local a, b = tonumber(new.version), tonumber(old.version)
  if a ~= b then return a > b end
  if new.precedence ~= old.precedence then return tonumber(new.precedence) > tonumber(old.precedence) end
  if new.payload ~= old.payload then return bytes_after(new.payload, old.payload) end
  if new.tenant ~= old.tenant then return bytes_after(new.tenant, old.tenant) end
  return tonumber(new.cost) > tonumber(old.cost)
end

local function least(a, b)
  return tonumber(b) < tonumber(a) and b or a
end

local function greatest(a, b)
  return tonumber(b) > tonumber(a) and b or a
end

-- Returns the merged request, and whether it differs from `old`.
local function merge(old, new)
  local top = supersedes(new, old) and new or old
  local merged = {
    tenant = top.tenant, cost = top.cost, version = top.version, precedence = top.precedence, payload = top.payload,
    band = least(old.band, new.band), prio = least(old.prio, new.prio), first_ms = least(old.first_ms, new.first_ms),
    extent = greatest(old.extent, new.extent),
    any_time = greatest(old.any_time, new.any_time),
  }
  for _, name in ipairs(REQUEST_FIELDS) do
    if merged[name] ~= old[name] then return merged, true end
  end
  return merged, false
end

-- The same for the request beside a run, with the shortest of the requested delays.
local function merge_pending(old, new)
  local merged, changed = merge(old, new)
  merged.quiet_ms = math.min(old.quiet_ms, new.quiet_ms)
  merged.max_delay_ms = math.min(old.max_delay_ms, new.max_delay_ms)
  return merged, changed or merged.quiet_ms ~= old.quiet_ms or merged.max_delay_ms ~= old.max_delay_ms
end
