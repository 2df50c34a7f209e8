-- Start-time fair queueing (Goyal, Vin, Cheng 1996), one sorted set of start tags per node, ready children only:
-- root -> band -> tenant -> table. A child is served at the least start tag S, which becomes the node's virtual time;
-- it is charged to F = S + cost/weight. A child that returns starts at max(virtual time, its last F).
-- A node without ready children forgets its tags: its next busy period begins at zero, which also keeps tags small.
-- include: config
local MIB = 1048576
local PRUNED_PER_CHARGE = 4

-- A thousandth of a MiB at weight 1; a job costs at least one MiB, because claiming and committing are never free.
local function units(cost, weight)
  return math.max(1, math.floor(math.max(1, cost / MIB) * 1000 / weight + 0.5))
end

-- Weights of the three edges on the way to a table: 1 unless cfg says otherwise.
local function weights(band, tenant, tbl)
  local found = call('HMGET', CFG, 'weight:band|' .. band, 'weight:tenant|' .. tenant, 'weight:table|' .. tbl)
  return tonumber(found[1] or 1), tonumber(found[2] or 1), tonumber(found[3] or 1)
end

-- Makes a child ready; false if it was so already, and then its ancestors are ready, too.
local function join(node, child)
  local ready = ready_key(node)
  if call('ZSCORE', ready, child) then return false end
  local start = math.max(number(call('HGET', VIRTUAL, node)), number(call('ZSCORE', idle_key(node), child)))
  call('ZREM', idle_key(node), child)
  call('ZADD', ready, int(start), child)
  return true
end

-- After a child has left: true if others are ready, else the node forgets and leaves its own parent.
local function still_busy(node)
  if call('EXISTS', ready_key(node)) == 1 then return true end
  call('DEL', idle_key(node))
  call('HDEL', VIRTUAL, node)
  return false
end

-- Takes a child out uncharged, its tag kept if it lies ahead; true if the node stays busy.
local function leave(node, child)
  local start = number(call('ZSCORE', ready_key(node), child))
  call('ZREM', ready_key(node), child)
  if not still_busy(node) then return false end
  if start > number(call('HGET', VIRTUAL, node)) then call('ZADD', idle_key(node), int(start), child) end
  return true
end

-- Tags that the virtual time has passed say nothing any more. Some go whenever one comes, so that they cannot pile up.
local function prune(node, virtual)
  local passed = call('ZRANGE', idle_key(node), '-inf', int(virtual), 'BYSCORE', 'LIMIT', 0, PRUNED_PER_CHARGE)
  if #passed > 0 then call('ZREM', idle_key(node), unpack(passed)) end
end

-- Charges the child that is served; `ready`: it has more. True if the node stays busy.
local function charge(node, child, amount, ready)
  local start = number(call('ZSCORE', ready_key(node), child))
  if ready then
    call('ZADD', ready_key(node), int(start + amount), child)
  else
    call('ZREM', ready_key(node), child)
    if not still_busy(node) then return false end
    prune(node, start)
    call('ZADD', idle_key(node), int(start + amount), child)
  end
  call('HSET', VIRTUAL, node, int(start))
  return true
end

-- Corrects a charge made by estimate once the cost is known; no tag falls behind the virtual time.
local function correct(node, child, difference)
  if difference == 0 then return end
  local virtual = number(call('HGET', VIRTUAL, node))
  local start = call('ZSCORE', ready_key(node), child)
  if start then
    call('ZADD', ready_key(node), int(math.max(virtual, tonumber(start) + difference)), child)
    return
  end
  if call('EXISTS', ready_key(node)) == 0 then return end
  local finish = math.max(virtual, number(call('ZSCORE', idle_key(node), child))) + difference
  if finish > virtual then
    call('ZADD', idle_key(node), int(finish), child)
  else
    call('ZREM', idle_key(node), child)
  end
end

local function enter_tree(band, tenant, tbl)
  if join(leaf_node(band, tenant), tbl) and join(band, tenant) then join(ROOT, band) end
end

local function leave_tree(band, tenant, tbl)
  if leave(leaf_node(band, tenant), tbl) or leave(band, tenant) then return end
  leave(ROOT, band)
end

-- Strict bands are served by rank, so their service moves no tag at the root.
local function is_strict(band) return tonumber(band) < cfg.strict_bands end

local function charge_path(band, tenant, tbl, cost, ready)
  local of_band, of_tenant, of_table = weights(band, tenant, tbl)
  ready = charge(leaf_node(band, tenant), tbl, units(cost, of_table), ready)
  ready = charge(band, tenant, units(cost, of_tenant), ready)
  if not is_strict(band) then
    charge(ROOT, band, units(cost, of_band), ready)
  elseif not ready then
    leave(ROOT, band)
  end
end

local function settle_path(band, tenant, tbl, estimated, actual)
  if estimated == actual then return end
  local of_band, of_tenant, of_table = weights(band, tenant, tbl)
  correct(leaf_node(band, tenant), tbl, units(actual, of_table) - units(estimated, of_table))
  correct(band, tenant, units(actual, of_tenant) - units(estimated, of_tenant))
  if not is_strict(band) then correct(ROOT, band, units(actual, of_band) - units(estimated, of_band)) end
end
