-- Actors differ in their abilities. A job needs one: its table's format and its own kind, such as `delta/compact`. A job that
-- the claiming actor cannot run is set aside: it is delayed, listed under its ability, and ready again as soon as an actor
-- with that ability claims. So no job waits behind one that no claiming actor can run, and such jobs can be counted. Its flow
-- keeps its tag meanwhile, so that claims of actors without the ability do not change who of those that wait is next.
-- include: index
-- include: capacity
local lacking, set_aside, return_aside
do
  local RETURNED_PER_CLAIM = 100
  -- What a background job lacks where the machine is busy; it waits in sight like one without an ability.
  local CAPACITY = 'spare capacity'
  -- Only for the case that the list entry is lost: an actor that can run the job does not wait for it.
  local SET_ASIDE_MS = 600000

  -- Returns the ability that a job needs, nil if nothing is known of the format of its table.
  local function ability_of(job, format)
    if format and format ~= '' then return format .. '/' .. job.kind end
  end

  local function has(abilities, needed)
    for i = 1, #abilities do
      if abilities[i] == needed then return true end
    end
    return false
  end

  -- Returns what a job needs and the actor does not have; an actor that announces no ability has all.
  function lacking(job, abilities, format)
    local needed = #abilities > 0 and ability_of(job, format)
    if needed and not has(abilities, needed) then return needed end
    if abilities.is_busy and gives_way(job) then return CAPACITY end
  end

  function set_aside(id, job, ability)
    call('ZADD', aside_jobs_key(ability), now_ms, id)
    call('SADD', ASIDE, ability)
    call('ZADD', aside_flow_key(job.band, job.tenant, job.table), now_ms, id)
    place(id, job, 'delayed', now_ms + SET_ASIDE_MS, 'why', 'ability', 'ability', ability,
      'error', ability == CAPACITY and 'waits for an actor on a machine that is less busy (LAKEWRIGHT_BACKGROUND_LOAD)'
        or 'waits for an actor that can run ' .. ability)
  end

  -- If some of these bands or tenants that are aside have fallen further behind than MAX_LAG, all move up together, but none past
  -- the virtual time: `take_tag` would move up each by itself, and so lose their order.
  local function catch_up(node, children)
    local tags, least = {}, nil
    for child in pairs(children) do
      local tag = tonumber(call('ZSCORE', aside_children_key(node), child))
      if tag then tags[child], least = tag, math.min(least or tag, tag) end
    end
    local virtual = virtual_of(node)
    local lag = virtual - MAX_LAG - (least or math.huge)
    if lag <= 0 then return end
    for child, tag in pairs(tags) do
      call('ZADD', aside_children_key(node), math.max(tag, math.min(tag + lag, virtual)), child)
    end
  end

  -- Makes the jobs that wait for what this actor has ready again, the longest waiting first.
  function return_aside(abilities)
    local returned, nodes = {}, {}
    for i = 1, #abilities + (abilities.is_busy and 0 or 1) do
      local found = call('ZPOPMIN', aside_jobs_key(abilities[i] or CAPACITY), RETURNED_PER_CLAIM)
      for at = 1, #found, 2 do
        local job = read_job(found[at])
        if job and job.state == 'delayed' and job.why == 'ability' then
          job.id = found[at]
          returned[#returned + 1] = job
          for node, child in pairs({[ROOT] = job.band, [job.band] = job.tenant}) do
            nodes[node] = nodes[node] or {}
            nodes[node][child] = true
          end
        end
      end
    end
    for node, children in pairs(nodes) do catch_up(node, children) end
    -- The best first: a job that is better than those before it would forgive its table's debt.
    table.sort(returned, function(a, b) return rank_of(a) < rank_of(b) end)
    for i = 1, #returned do
      call('ZREM', DELAYED, returned[i].id)
      -- Queued first: a flow that is empty in between would lose its tag.
      place(returned[i].id, returned[i], 'queued')
      forget_aside(returned[i].id, returned[i])
    end
  end
end
