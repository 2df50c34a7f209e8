-- One claim: three heads, one pop, three updates. A worker that lets jobs share a commit also gets further ready
-- jobs of the same flow, which are charged with the first one, as one service.
-- include: index
-- include: abilities
-- include: charge
-- include: limits
-- include: admission
-- include: hand_over
local MAX_BANDS = 8
local PASSED_PER_BAND
-- The last token, and the time of the last poll for due jobs; jobs that this call has taken out, because their tables moved
-- to another group.
local last_token, last_polled_ms, leaving
local begin_claims, end_claims, take_next
do
  -- A claim passes over so many entries of a band that it cannot serve, such as jobs that need another ability; then it goes
  -- on with the other bands, so that no actor is idle because a better band is full of jobs of others.
  PASSED_PER_BAND = 100
  -- Band, tenant and table are the path on which the job was found.
  local SERVED = {'state', 'partition', 'kind', 'prio', 'cost', 'version', 'payload', 'first_ms', 'attempts', 'revision',
    'token', 'extent', 'any_time'}

  -- Strict claims in a row while a weighted band waited, and the virtual time of the root.
  local strict_run, root_time
  local strict_run_before, last_polled_before_ms
  -- Entries passed over, by band.
  local passed
  -- A job that still runs in the group that its table has left is tried again after so long.
  local RUNS_ELSEWHERE_MS = 1000

  function begin_claims()
    local found = call('HMGET', VIRTUAL_TIMES, 'strict_run', ROOT, 'token', 'polled_ms')
    strict_run, root_time, last_token = number(found[1]), number(found[2]), number(found[3])
    last_polled_ms = number(found[4])
    strict_run_before, last_polled_before_ms = strict_run, last_polled_ms
    passed = {}
  end

  -- Writes what the claims have changed, with one HSET.
  function end_claims()
    -- The count outlasts an empty root: a merge that moves the only job empties it for a moment, and must not reset the count.
    if strict_run ~= strict_run_before then moved_virtual_times.strict_run = strict_run end
    if last_polled_ms ~= last_polled_before_ms then moved_virtual_times.polled_ms = last_polled_ms end
    local moved = {'token', last_token}
    for node, time in pairs(moved_virtual_times) do
      moved[#moved + 1] = node
      moved[#moved + 1] = time
    end
    call('HSET', VIRTUAL_TIMES, unpack(moved))
  end

  local function pass_over(band)
    passed[band] = (passed[band] or 0) + 1
    return true
  end

  -- The first ready strict band by rank, else the ready weighted band with the least start tag, else the background; but
  -- after `strict_in_row` strict claims in a row, a weighted band that waits is next. Returns nil if nothing is ready, else
  -- the band, its tag, and whether a weighted band waits.
  local function next_band()
    local tags = call('ZRANGE', ready_key(ROOT), 0, MAX_BANDS - 1, 'WITHSCORES')
    local strict, weighted, tag, background
    for i = 1, #tags, 2 do
      local band = tags[i]
      if not is_paused(band) and (passed[band] or 0) < PASSED_PER_BAND then
        if band == BACKGROUND then
          background = band
        elseif not is_strict(band) then
          if not weighted then weighted, tag = band, tonumber(tags[i + 1]) end
        elseif not strict or tonumber(band) < tonumber(strict) then
          strict = band
        end
      end
    end
    if strict and not (weighted and strict_run >= strict_in_row) then return strict, 0, weighted ~= nil end
    return weighted or background, tag or 0, weighted ~= nil
  end

  local function charge_band(band, tag, amount, now, weighted_waits)
    if not is_weighted(band) then
      strict_run = weighted_waits and strict_run + 1 or 0
      if now ~= 'ready' then leave(ROOT, band, now) end
      return
    end
    strict_run = 0
    -- A band that was strict until now has an old tag; it must not catch up on the service that it missed.
    root_time = math.max(root_time, tag)
    if charge(ROOT, band, root_time, amount, now) == 'empty' then root_time = 0 end
  end

  -- A job that failed, or whose engine or actor died, runs by itself from then on: it must not take others with it again.
  local function is_shareable(job) return job.attempts == '0' end

  -- The flow's next jobs that share the slot of the first one: of its kind, in their order, until one does not fit.
  -- They are taken out of the flow and appended to `taken`.
  local function take_along(flow, taken, share, most, abilities)
    local bytes, ids = tonumber(taken[1].cost), {}
    most = math.min(most, share.jobs)
    if most < 2 or not is_shareable(taken[1]) then return end
    for _, id in ipairs(call('ZRANGE', flow, 0, most - 2)) do
      local job = read_job(id, SERVED)
      if not job or job.state ~= 'queued' or job.kind ~= taken[1].kind or not is_shareable(job) then break end
      bytes = bytes + tonumber(job.cost)
      if bytes > share.bytes then break end
      job.id, job.band, job.tenant, job.table = id, taken[1].band, taken[1].tenant, taken[1].table
      if runs_elsewhere(id) then break end
      local opens, closes = start_of(job)
      if opens or abilities.is_busy and gives_way(job) then break end
      job.closes = closes
      reserve(job)
      taken[#taken + 1] = job
      ids[#ids + 1] = id
    end
    if #ids == 0 then return end
    call('ZREM', flow, unpack(ids))
    call('ZREM', QUEUED, unpack(ids))
  end

  local function sum_of_units(jobs, weight)
    local sum = 0
    for i = 1, #jobs do sum = sum + units(tonumber(jobs[i].cost), tonumber(weight or 1)) end
    return sum
  end

  -- The first job of a flow was taken out and not served, or there was none; `rank`: the rank of the next one, nil without one.
  local function skip_first(band, tenant, tbl, rank)
    if rank then
      move_turn(band, tenant, tbl, 'GT', rank)
    else
      deactivate(band, tenant, tbl, flow_condition(band, tenant, tbl))
    end
  end

  -- Takes the next job out of the queued index, and those that share its slot, charged by their estimated costs.
  -- Returns whether there was an entry, and the jobs with their ids. An entry without a queued job, a tenant or table at its
  -- limit, a job that its work window or a budget holds, one that needs another ability and one of another group are skipped and
  -- leave the tree.
  function take_next(abilities, share)
    local band, band_tag, weighted_waits = next_band()
    if not band then return false end
    local tenant, tenant_tag = first_of(ready_key(band))
    if not tenant then leave(ROOT, band, condition(band)) return pass_over(band) end
    local leaf = leaf_node(band, tenant)
    local tbl, turn = first_of(ready_key(leaf))
    if not tbl then leave_band(band, tenant, condition(leaf)) return pass_over(band) end
    local set = settings_of_path(band, tenant, tbl)
    local of_tenant = room(limit_of(set[4]), 'tenant', tenant)
    if of_tenant <= 0 then throttle_tenant(band, tenant) return pass_over(band) end
    local of_table = room(limit_of(set[5]), 'table', tbl)
    if of_table <= 0 then throttle_table(band, tenant, tbl) return pass_over(band) end
    local flow = flow_key(band, tenant, tbl)
    local id = call('ZPOPMIN', flow)[1]
    local _, rank = first_of(flow)
    if not id then skip_first(band, tenant, tbl) return pass_over(band) end
    local job = read_job(id, SERVED)
    if not job or job.state ~= 'queued' then
      skip_first(band, tenant, tbl, rank)
      return pass_over(band)
    end
    job.id, job.band, job.tenant, job.table = id, band, tenant, tbl
    call('ZREM', QUEUED, id)
    local format, group = unpack(call('HMGET', table_state_key(tbl), 'format', 'group'))
    if group_prefix(group or '') ~= P then
      leaving[#leaving + 1] = take_out(id)
      skip_first(band, tenant, tbl, rank)
      return pass_over(band)
    end
    if runs_elsewhere(id) then
      place(id, job, 'delayed', now_ms + RUNS_ELSEWHERE_MS, 'why', 'moved')
      skip_first(band, tenant, tbl, rank)
      return pass_over(band)
    end
    local opens, closes, holder = start_of(job)
    if opens then
      hold(id, job, opens, holder)
      skip_first(band, tenant, tbl, rank)
      return pass_over(band)
    end
    job.closes = closes
    local ability = lacking(job, abilities, format)
    if ability then
      set_aside(id, job, ability)
      skip_first(band, tenant, tbl, rank)
      return pass_over(band)
    end
    reserve(job)
    local taken = {job}
    if share.jobs > 1 and rank then
      take_along(flow, taken, share, math.min(of_tenant, of_table), abilities)
      if #taken > 1 then rank = select(2, first_of(flow)) end
    end
    local now = rank and 'ready' or flow_condition(band, tenant, tbl)
    now = charge_table(leaf, tbl, turn, sum_of_units(taken, set[3]), now, rank)
    now = charge(band, tenant, tenant_tag, sum_of_units(taken, set[2]), now)
    charge_band(band, band_tag, sum_of_units(taken, set[1]), now, weighted_waits)
    return true, taken
  end
end
