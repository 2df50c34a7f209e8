-- Start-time fair queueing (Goyal, Vin, Cheng 1996), one sorted set of start tags per node of the tree, ready children
-- only: root -> band -> tenant -> table. Here is who is in the tree; `charge` is what service costs.
-- A child that returns starts at max(virtual time, its last finish tag). A node without ready children forgets its tags:
-- its next busy period begins at zero, which also keeps tags small.
-- A table or tenant that is paused or at its limit is parked: out of the tree, its tag kept, remembered in a set of its
-- own, because a table can have flows in several bands.
-- include: config
local FLOWS_UNPARKED = 100

-- Virtual times that this script has moved and not written yet; one HSET at its end writes all of them.
local virtual_now
fresh[#fresh + 1] = function() virtual_now = {} end

local function virtual_of(node)
  return virtual_now[node] or number(call('HGET', VIRTUAL, node))
end

-- Makes a child ready that is not.
local function join(node, child)
  local ready, idle = ready_key(node), idle_key(node)
  local kept = call('ZSCORE', idle, child)
  if kept then call('ZREM', idle, child) end
  call('ZADD', ready, math.max(virtual_of(node), number(kept)), child)
end

local function is_ready(node, child) return call('ZSCORE', ready_key(node), child) end

-- After a child has left: true if others are ready, else the node forgets and leaves its own parent.
local function still_busy(node)
  if call('EXISTS', ready_key(node)) == 1 then return true end
  virtual_now[node] = nil
  call('DEL', idle_key(node))
  call('HDEL', VIRTUAL, node)
  return false
end

-- Takes a child out uncharged, its tag kept if it lies ahead; true if the node stays busy.
local function leave(node, child)
  local start = number(call('ZSCORE', ready_key(node), child))
  call('ZREM', ready_key(node), child)
  if not still_busy(node) then return false end
  if start > virtual_of(node) then call('ZADD', idle_key(node), start, child) end
  return true
end

local function admit_tenant(band, tenant)
  if is_ready(band, tenant) or call('ZSCORE', parked_key('tenant|' .. tenant), band) then return end
  join(band, tenant)
  if not is_ready(ROOT, band) then join(ROOT, band) end
end

-- A flow got its first job, or is no longer parked.
local function enter_tree(band, tenant, tbl)
  local leaf = leaf_node(band, tenant)
  if is_ready(leaf, tbl) or call('ZSCORE', parked_key('table|' .. tbl), leaf) then return end
  join(leaf, tbl)
  admit_tenant(band, tenant)
end

local function leave_band(band, tenant)
  if not leave(band, tenant) then leave(ROOT, band) end
end

-- A flow has lost its last job without being served.
local function leave_tree(band, tenant, tbl)
  local leaf = leaf_node(band, tenant)
  if call('ZREM', parked_key('table|' .. tbl), leaf) == 1 or leave(leaf, tbl) then return end
  if call('ZREM', parked_key('tenant|' .. tenant), band) == 0 then leave_band(band, tenant) end
end

local function park_tenant(band, tenant)
  call('ZADD', parked_key('tenant|' .. tenant), 0, band)
  leave_band(band, tenant)
end

local function park_table(band, tenant, tbl)
  local leaf = leaf_node(band, tenant)
  call('ZADD', parked_key('table|' .. tbl), 0, leaf)
  if not leave(leaf, tbl) then leave_band(band, tenant) end
end

-- Lets a table's or tenant's flows back in; whoever is still at its limit is parked again when it is met.
local function unpark(level, name)
  local parked = call('ZPOPMIN', parked_key(level .. '|' .. name), FLOWS_UNPARKED)
  for i = 1, #parked, 2 do
    if level == 'tenant' then
      admit_tenant(parked[i], name)
    else
      local band, tenant = parked[i]:match('^(%d+)|(.*)$')
      enter_tree(band, tenant, name)
    end
  end
end

-- Strict bands are served by rank, so their service moves no tag at the root.
local function is_strict(band) return tonumber(band) < strict_bands end
