-- Traces of the newest requests of a job, separated by blanks, oldest first: they change nothing about the job, and an actor
-- reads them only if it records traces. `traces` belongs to the job's request, `d_traces` to the one beside the run.
-- include: config
local add_trace, move_traces
do
  local MAX_TRACES = 8

  local function joined_traces(older, newer)
    local all, seen = {}, {}
    for trace in (older .. ' ' .. newer):gmatch('%S+') do
      if not seen[trace] then
        seen[trace] = true
        all[#all + 1] = trace
      end
    end
    return table.concat(all, ' ', math.max(1, #all - MAX_TRACES + 1))
  end

  -- A repeated request changes nothing; one without a trace costs nothing.
  function add_trace(request, field)
    if request.trace == '' then return end
    local kept = call('HGET', job_key(request.id), field) or ''
    call('HSET', job_key(request.id), field, joined_traces(kept, request.trace))
  end

  -- The request beside the run becomes the job's own (`is_new`), or is merged into it.
  function move_traces(id, is_new)
    local found = call('HMGET', job_key(id), 'traces', 'd_traces')
    if not found[1] and not found[2] then return end
    local kept = joined_traces(not is_new and found[1] or '', found[2] or '')
    call('HDEL', job_key(id), 'd_traces')
    if kept == '' then call('HDEL', job_key(id), 'traces') else call('HSET', job_key(id), 'traces', kept) end
  end
end
