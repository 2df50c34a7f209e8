#!lua
--[[
  preempt: for each job of a strict band that has waited for too long, one running job of another band is asked to yield:
  in the worst band, the one whose restart costs least. A job of a weighted band makes only jobs of the background yield.
  One revocation per waiting job at a time, and a job is preempted only a few times.

  KEYS[1]  prefix of the queue
  ARGV[1]  patience ms: how long a job waits before it may preempt
  ARGV[2]  minimum run time of a job before it is preempted, ms
  ARGV[3]  maximum preemptions of one job

  Output: list of {waiting id, id of the job that is asked to yield}
]]
-- include: job
-- include: tree
-- include: limits
-- include: admission
-- include: event
local patience_ms, run_ms, times = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local PER_NODE, JOBS, WAITING, MAX_LEASES = 10, 100, 8, 100
local examined = 0
local TURN_MS = 2000

-- True if the job that was revoked for this one still holds its slot.
local function is_served(revoked)
  local victim, token = (revoked or ''):match('^(.*)|(%d+)$')
  if not victim then return false end
  local found = call('HMGET', job_key(victim), 'state', 'token')
  return found[1] == 'leased' and found[2] == token
end

-- Adds the jobs of one flow that have waited for long enough; flows are read in the order in which they are served.
local function add_waiting(waiting, flow, tbl)
  local ids = call('ZRANGE', flow, 0, PER_NODE - 1)
  for i = 1, #ids do
    if #waiting == WAITING or examined == JOBS then return end
    examined = examined + 1
    local found = call('HMGET', job_key(ids[i]), 'first_ms', 'ready_ms', 'revoked', 'kind', 'extent', 'any_time', 'tenant',
      'cost', 'partition')
    local job = {table = tbl, kind = found[4], extent = found[5] or '0', any_time = found[6], tenant = found[7],
      cost = found[8] or '0', partition = found[9]}
    -- A debounce or a back-off is no wait for a slot.
    local waits_since = math.max(number(found[1]), number(found[2]))
    local may_preempt = not start_of(job) and not is_served(found[3])
    if may_preempt and now_ms - waits_since >= patience_ms then waiting[#waiting + 1] = ids[i] end
  end
end

local function add_band(waiting, band)
  local tenants = call('ZRANGE', ready_key(band), 0, PER_NODE - 1)
  for i = 1, #tenants do
    local tenant = tenants[i]
    local tables = call('ZRANGE', ready_key(leaf_node(band, tenant)), 0, PER_NODE - 1)
    for j = 1, #tables do
      local set = settings_of_path(band, tenant, tables[j])
      if not is_at(limit_of(set[4]), 'tenant', tenant) and not is_at(limit_of(set[5]), 'table', tables[j]) then
        add_waiting(waiting, flow_key(band, tenant, tables[j]), tables[j])
      end
    end
  end
end

-- Loss of stopping a run: its cost times the share that is done; a run that reports no progress counts as half done.
local function loss(cost, progress)
  local is_json, report = pcall(cjson.decode, progress or '')
  local share = is_json and type(report) == 'table' and tonumber(report.share) or 0.5
  return tonumber(cost) * math.min(1, math.max(0, share))
end

-- Jobs that were leased together share a slot, which any of them gives back for all: a slot is one victim, at the loss of
-- all its jobs, and spared if one of them must not be preempted again. Returns the victims by slot.
local function add_to_slot(slots, slot, victim)
  local seen = slots[slot]
  if not seen then
    slots[slot] = victim
    return
  end
  seen.loss, seen.is_spared = seen.loss + victim.loss, seen.is_spared or victim.is_spared
  -- The job that was preempted most often, so that a slot is spared as soon as a job alone would be; then the latest.
  local is_later = tonumber(victim.token) > tonumber(seen.token)
  if victim.preempted > seen.preempted or victim.preempted == seen.preempted and is_later then
    seen.id, seen.token, seen.preempted = victim.id, victim.token, victim.preempted
  end
end

local function victims()
  -- With more leases than one call reads, each call begins at another page.
  local first = MAX_LEASES * (math.floor(now_ms / TURN_MS) % math.ceil(math.max(1, call('ZCARD', LEASES)) / MAX_LEASES))
  local slots, found, ids = {}, {}, call('ZRANGE', LEASES, first, first + MAX_LEASES - 1)
  for i = 1, #ids do
    local job = call('HMGET', job_key(ids[i]), 'band', 'started', 'cost', 'progress', 'stop', 'preempted', 'token', 'slot')
    local ran_ms = now_ms - number(job[2])
    -- A cancelled job ends by itself, and leaves its slot to those that share it.
    if job[1] and not is_strict(job[1]) and job[5] ~= 'cancel' and ran_ms >= run_ms then
      local is_spared = job[5] and true or number(job[6]) >= times
      local slot = job[8] or job[7]
      add_to_slot(slots, slot, {id = ids[i], band = tonumber(job[1]), loss = loss(job[3], job[4]), token = job[7],
        preempted = number(job[6]), is_spared = is_spared})
    end
  end
  for _, victim in pairs(slots) do
    if not victim.is_spared then found[#found + 1] = victim end
  end
  table.sort(found, function(a, b)
    if a.band ~= b.band then return a.band > b.band end
    if a.loss ~= b.loss then return a.loss < b.loss end
    return tonumber(a.token) > tonumber(b.token)
  end)
  return found
end

local waiting = {}
local bands = call('ZRANGE', ready_key(ROOT), 0, PER_NODE - 1)
for i = 1, #bands do
  if is_strict(bands[i]) and not is_paused(bands[i]) then add_band(waiting, bands[i]) end
end
local strict = #waiting
for i = 1, #bands do
  if is_weighted(bands[i]) and not is_paused(bands[i]) then add_band(waiting, bands[i]) end
end
if #waiting == 0 then return {} end
local revoked = {}
local running = victims()
for i = 1, math.min(#waiting, #running) do
  local victim = running[i]
  -- The worst bands come first.
  if i > strict and victim.band ~= tonumber(BACKGROUND) then break end
  call('HSET', job_key(victim.id), 'stop', 'preempt', 'preempted', victim.preempted + 1)
  call('HSET', job_key(waiting[i]), 'revoked', victim.id .. '|' .. victim.token)
  event('preempted', victim.id, waiting[i])
  revoked[i] = {waiting[i], victim.id}
end
return revoked
