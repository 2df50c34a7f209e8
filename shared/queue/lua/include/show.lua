-- A job for reading: its fields, and its time in the index of its state.
-- include: config
local function timed_index(state)
  return state == 'leased' and LEASES or state == 'delayed' and DELAYED or state == 'quarantined' and QUARANTINED
end

-- `at`: the job's time in its index if that is known.
local function show(id, at)
  local fields = call('HGETALL', job_key(id))
  if #fields == 0 then return false end
  if at then return {id, at, fields} end
  local index = timed_index(call('HGET', job_key(id), 'state'))
  return {id, index and call('ZSCORE', index, id) or '', fields}
end
