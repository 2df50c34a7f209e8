-- Groups of a queue: each has jobs, actors and settings of its own. The state of a table names its group, '' for the queue's
-- first one. So calls that name a table or a job find its group by themselves, and a table moves by one write of its state.
-- include: config
local group_of, other_prefixes, enter_table, enter_job
do
  -- As in limits.MAX_GROUPS.
  local MAX_GROUPS = 16
  local others
  on_call_start[#on_call_start + 1] = function() others = nil end

  function group_of(tbl) return call('HGET', table_state_key(tbl), 'group') or '' end

  -- Prefixes of the groups in which any table ever was, without this one.
  function other_prefixes()
    if others then return others end
    others = {}
    local groups = call('ZRANGE', GROUPS, 0, MAX_GROUPS - 1)
    if #groups > 0 and P ~= S then others[1] = S end
    for i = 1, #groups do
      local prefix = group_prefix(groups[i])
      if prefix ~= P then others[#others + 1] = prefix end
    end
    return others
  end

  -- The rest of the call serves the group of a table.
  function enter_table(tbl)
    local group = group_of(tbl)
    local prefix = group_prefix(group)
    if group ~= '' then call('ZADD', GROUPS, 0, group) end
    if prefix ~= P then begin_call(prefix) end
  end

  -- The rest of the call serves the group in which a job is; this one if it is in none.
  function enter_job(id)
    local here, prefixes = P, other_prefixes()
    if #prefixes == 0 or call('EXISTS', job_key(id)) == 1 then return end
    for i = 1, #prefixes do
      begin_call(prefixes[i])
      if call('EXISTS', job_key(id)) == 1 then return end
    end
    begin_call(here)
  end
end
