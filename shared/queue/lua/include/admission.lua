-- When a job may start. A table may have a work window: outside of it no job of the table starts, or no heavy one, and a
-- running one ends at its next step. Requests for any time are not held. The text in WORK_WINDOWS is
-- `all|from-to,from-to|as configured`, or `heavy|...`, in milliseconds since 1970, in ascending order; a decider renews it.
-- include: index
-- include: count

local start_of, hold
do
  -- Kinds whose jobs are short; a full rewrite is heavy, whatever its kind.
  local LIGHT = {compact = true, checkpoint = true, rewrite_manifests = true, set_properties = true}
  -- A job that is held asks again after so long, because its window may have changed.
  local ASKED_AGAIN_MS = 900000

  local function is_light(job) return LIGHT[job.kind] and (job.extent or '0') == '0' end

  -- Returns when a job may start, nil if now; and when it has to end then, nil if never.
  function start_of(job)
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

  -- A job waits for its table's work window; its flow gives up its place meanwhile, as for a debounce.
  function hold(id, job, opens)
    if call('HGET', job_key(id), 'opens') ~= int(opens) then count(job.table, {'held_by_window', 1}, 1, 1) end
    place(id, job, 'delayed', math.min(opens, now_ms + ASKED_AGAIN_MS), 'why', 'window', 'opens', int(opens))
  end
end
