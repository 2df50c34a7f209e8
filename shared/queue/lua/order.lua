#!lua flags=no-writes
--[[
  order: the jobs that the next claims of one slot each would lease, and why, if no job arrives or ends meanwhile. Reads
  only as much of the tree as so many claims can need, and serves it in memory.

  KEYS[1]  prefix of the queue
  ARGV[1]  number of claims

  Output: list of {id, band, tenant, table, reason (strict_priority, starvation_guard, fair_share, background), tag of the band, of the
          tenant, turn of the table, rank of the job ms, first arrival ms, priority}; tags are integers, the rest is text
]]
-- include: limits
-- include: merge
-- include: serve
local wanted = tonumber(ARGV[1])
local nodes, flows, flown, rows = {}, {}, {}, {}

-- The first children of a node by (tag, name), as many as there are claims left: each claim moves or takes one, so that one
-- of these is always the least of all. For each child that is skipped, one more is read (`pass`). All bands are read, because
-- a band that waits counts for the choice without being the first.
local function children(node)
  if not nodes[node] then
    local list = {read = node == ROOT and MAX_BANDS or wanted - #rows}
    local found = call('ZRANGE', ready_key(node), 0, list.read - 1, 'WITHSCORES')
    for i = 1, #found, 2 do list[#list + 1] = {name = found[i], tag = tonumber(found[i + 1])} end
    nodes[node] = list
  end
  return nodes[node]
end

local function is_after(one, other)
  return one.tag > other.tag or (one.tag == other.tag and bytes_after(one.name, other.name))
end

local function drop(list, child)
  for i = 1, #list do
    if list[i] == child then table.remove(list, i) return end
  end
end

local function insert(list, child)
  local at = #list + 1
  for i = 1, #list do
    if is_after(list[i], child) then at = i break end
  end
  table.insert(list, at, child)
end

-- Moves a child whose tag has grown, so that the list stays in order.
local function move(list, child)
  drop(list, child)
  insert(list, child)
end

-- Removes a child that cannot be served, and reads one more; false, because no job was served.
local function pass(node, child)
  local list = children(node)
  drop(list, child)
  local found = call('ZRANGE', ready_key(node), list.read, list.read, 'WITHSCORES')
  list.read = list.read + 1
  if found[1] then insert(list, {name = found[1], tag = tonumber(found[2])}) end
  return false
end

-- The first job of a flow behind those that were served before, and its rank.
local function head_of(key)
  local flow = flows[key]
  if not flow then
    flow = {at = 0}
    flows[key] = flow
  end
  if not flow.head then flow.head = call('ZRANGE', key, flow.at, flow.at, 'WITHSCORES') end
  return flow.head[1], tonumber(flow.head[2])
end

local function pop(key)
  local flow = flows[key]
  flow.at, flow.head = flow.at + 1, nil
end

local function is_full(limit, level, name)
  if not limit then return false end
  local field = level .. '|' .. name
  return number(call('HGET', IN_FLIGHT, field)) + (flown[field] or 0) >= limit
end

local function fly(level, name)
  local field = level .. '|' .. name
  flown[field] = (flown[field] or 0) + 1
end

local strict_run = number(call('HGET', VIRTUAL_TIMES, 'strict_run'))
local root_time = number(call('HGET', VIRTUAL_TIMES, ROOT))

local function choose_band()
  local strict, background, weighted = nil, nil, {}
  local bands = children(ROOT)
  for i = 1, #bands do
    local one = bands[i]
    if not is_paused(one.name) then
      if one.name == BACKGROUND then
        background = one
      elseif not is_strict(one.name) then
        weighted[#weighted + 1] = one
      elseif not strict or tonumber(one.name) < tonumber(strict.name) then
        strict = one
      end
    end
  end
  if strict and not (#weighted > 0 and strict_run >= strict_in_row) then return strict, 'strict_priority', #weighted > 0 end
  if not weighted[1] then return background, 'background', false end
  return weighted[1], strict and 'starvation_guard' or 'fair_share', true
end

-- Charges a served child, or drops it when it is empty; true if its node has any child left. `least`: for a table, the rank of
-- its next job.
local function advance(list, child, amount, has_more, least)
  if has_more then
    child.tag = math.max(child.tag + amount, least or 0)
    move(list, child)
  else
    drop(list, child)
  end
  return #list > 0
end

-- One claim in memory: nil when nothing is ready, false when a child was skipped, else the row to show.
local function serve()
  local band, reason, weighted_waits = choose_band()
  if not band then return nil end
  local tenants = children(band.name)
  local tenant = tenants[1]
  if not tenant then return pass(ROOT, band) end
  local leaf = leaf_node(band.name, tenant.name)
  local tables = children(leaf)
  local tbl = tables[1]
  if not tbl then return pass(band.name, tenant) end
  local set = settings_of_path(band.name, tenant.name, tbl.name)
  if is_full(limit_of(set[4]), 'tenant', tenant.name) then return pass(band.name, tenant) end
  if is_full(limit_of(set[5]), 'table', tbl.name) then return pass(leaf, tbl) end
  local key = flow_key(band.name, tenant.name, tbl.name)
  local id, rank = head_of(key)
  local job = id and call('HMGET', job_key(id), 'cost', 'first_ms', 'prio', 'kind', 'extent', 'any_time', 'partition')
  if not id or not job[1] then return pass(leaf, tbl) end
  pop(key)
  local asked = {table = tbl.name, tenant = tenant.name, cost = job[1], kind = job[4], extent = job[5] or '0', any_time = job[6],
    partition = job[7]}
  if start_of(asked) then
    local has_more, next_rank = head_of(key)
    if not has_more then return pass(leaf, tbl) end
    tbl.tag = math.max(tbl.tag, next_rank)
    move(tables, tbl)
    return false
  end
  local row = {id, band.name, tenant.name, tbl.name, reason, band.tag, tenant.tag, tbl.tag, rank, job[2], job[3]}
  local cost = tonumber(job[1])
  local has_next, rank_of_next = head_of(key)
  local more = advance(tables, tbl, units(cost, tonumber(set[3] or 1)), has_next, rank_of_next)
  more = advance(tenants, tenant, units(cost, tonumber(set[2] or 1)), more)
  if not is_weighted(band.name) then
    strict_run = weighted_waits and strict_run + 1 or 0
    if not more then drop(children(ROOT), band) end
  else
    strict_run = 0
    root_time = math.max(root_time, band.tag)
    band.tag = root_time
    advance(children(ROOT), band, units(cost, tonumber(set[1] or 1)), more)
  end
  reserve(asked, true)
  fly('tenant', tenant.name)
  fly('table', tbl.name)
  return row
end

for _ = 1, wanted + 100 do
  if #rows == wanted then break end
  local row = serve()
  if row == nil then break end
  if row then rows[#rows + 1] = row end
end
return rows
