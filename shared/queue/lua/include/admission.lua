-- When a job may start. A table may have a work window: outside of it no job of the table starts, or no heavy one, and a
-- running one ends at its next step. And no job starts that may break a budget. Requests for any time are not held. The text
-- in WORK_WINDOWS is `all|from-to,from-to|as configured`, or `heavy|...`, in milliseconds since 1970, in ascending order; a
-- decider renews it.
-- include: index
-- include: count
-- include: budget

local start_of, hold
do
  -- Kinds whose jobs are short; a full rewrite is heavy, whatever its kind.
  local LIGHT = {
    compact = true, checkpoint = true, rewrite_manifests = true, merge_deletes = true, convert_deletes = true,
    set_properties = true,
  }
  -- A job that is held asks again after so long, because its window or its budget may have changed.
  local ASKED_AGAIN_MS = 900000
  -- Jobs that wait for a budget come back within so long, one after another, the best first.
  local SPREAD_MS, SPREAD_PER_STEP_MS, BEST_STEPS = 5000, 100, 15

  local function is_light(job) return LIGHT[job.kind] and (job.extent or '0') == '0' end

  -- Returns when the table's window opens, nil if a job may start now; and when it has to end then, nil if never.
  local function window_opens(job)
    if job.any_time == '1' then return nil end
    local window = call('HGET', WORK_WINDOWS, job.table)
    if not window then return nil end
    local held, times = window:match('^(%a+)|([%d,-]*)|')
    if held == 'heavy' and is_light(job) then return nil end
    for from, to in (times or ''):gmatch('(%d+)-(%d+)') do
      from, to = tonumber(from), tonumber(to)
      if now_ms < from then return from end
      if now_ms < to then return nil, to end
    end
    -- No decider has renewed the times: nothing is known of the next opening.
    return now_ms + ASKED_AGAIN_MS
  end

  -- Returns when a job may start, nil if now; when it has to end then, nil if never; and what it waits for: `window`, or the
  -- scope of a budget.
  function start_of(job)
    local opens, closes = window_opens(job)
    if opens then return opens, nil, 'window' end
    local renewed, holder = budget_opens(job)
    return renewed, closes, holder
  end

  -- A job waits for its table's window or for a budget; its flow gives up its place meanwhile, as for a debounce.
  function hold(id, job, opens, holder)
    local why, at = 'window', math.min(opens, now_ms + ASKED_AGAIN_MS)
    if holder ~= 'window' then
      local steps = (rank_of(job) - opens) / aging_ms + BEST_STEPS
      why, at = 'budget', at + math.max(0, math.min(SPREAD_MS, math.floor(SPREAD_PER_STEP_MS * steps)))
      call('ZREMRANGEBYSCORE', BUDGET_WAITS, '-inf', now_ms)
      call('ZADD', BUDGET_WAITS, at, job.table)
    end
    if call('HGET', job_key(id), 'opens') ~= int(opens) then count(job.table, {'held_by_' .. why, 1}, 1, 1) end
    place(id, job, 'delayed', at, 'why', why, 'opens', int(opens), 'holder', holder)
  end
end
