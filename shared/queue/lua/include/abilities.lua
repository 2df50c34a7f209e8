-- Actors differ in their abilities. A job needs one: its table's format and its own kind, such as `delta/compact`. A job that
-- the claiming actor cannot run is set aside: it is delayed, listed under its ability, and ready again as soon as an actor
-- with that ability claims. So no job waits behind one that no claiming actor can run, and such jobs can be counted.
-- include: index
local RETURNED_PER_CLAIM = 100
-- Only for the case that the list entry is lost: an actor that can run the job does not wait for it.
local SET_ASIDE_MS = 600000

-- Returns the ability that a job needs, nil if nothing is known of its table.
local function ability_of(job)
  local format = call('HGET', table_state_key(job.table), 'format')
  if format and format ~= '' then return format .. '/' .. job.kind end
end

-- Returns the ability that a job needs and the actor does not have; an actor that announces none has all.
local function lacking(job, abilities)
  if #abilities == 0 then return nil end
  local needed = ability_of(job)
  for i = 1, #abilities do
    if abilities[i] == needed then return nil end
  end
  return needed
end

local function set_aside(id, job, ability)
  call('ZADD', aside_jobs_key(ability), now_ms, id)
  call('SADD', ASIDE, ability)
  place(id, job, 'delayed', now_ms + SET_ASIDE_MS, 'why', 'ability', 'ability', ability,
    'error', 'waits for an actor that can run ' .. ability)
end

-- Makes the jobs that wait for these abilities ready again, the longest waiting first.
local function return_aside(abilities)
  for i = 1, #abilities do
    local found = call('ZPOPMIN', aside_jobs_key(abilities[i]), RETURNED_PER_CLAIM)
    for at = 1, #found, 2 do
      local job = read_job(found[at])
      if job and job.state == 'delayed' and job.why == 'ability' then
        withdraw(found[at], job)
        call('HDEL', job_key(found[at]), 'error')
        place(found[at], job, 'queued')
      end
    end
  end
end
