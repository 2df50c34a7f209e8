-- One sorted set per node of the tree, ready children only: root -> band -> tenant -> table. This file keeps the members of
-- the tree; `charge` keeps the cost of service.
-- Bands and tenants: start-time fair queueing (Goyal, Vin, Cheng 1996), scores are start tags. A child that returns starts at
-- max(virtual time, its last finish tag). A node that has become empty deletes its tags: its next busy period begins at
-- zero, which also keeps tags small.
-- Tables of a tenant (the children of a leaf): scores are turns, times in ms. A turn is the rank of the table's first job (see
-- `index`), and later by what its jobs before that one have cost since the table began to wait. So a tenant's share goes to
-- the job of most benefit per cost, and a table with many jobs does not hold up the others. A turn is never before the rank
-- of the first job; a better job that arrives takes its table forward to its own rank.
-- A table or tenant that is paused or at its limit is throttled, and recorded in a set of its own, because a table can have
-- flows in several bands. Its position in the tree is then held: it is not served, keeps its tag, and its node is not empty.
-- A node that has only held children is itself held by its parent.
-- A flow whose jobs are all set aside for other actors (see `abilities`) is aside, and so is a node without other children:
-- it keeps its tag, and its node is not empty. Others are served meanwhile, so the tag falls behind the virtual time, by
-- MAX_LAG at most once it returns. That much it then makes up for.
-- include: config
local MAX_UNTHROTTLED = 100
-- 16 GiB at weight 1, as charges count them: many times what a job costs, so that who waited together stays in order; and
-- no more, because newcomers wait for as long.
local MAX_LAG = 16384000

-- Virtual times that this script has changed and not written yet; one HSET at its end writes all of them.
local moved_virtual_times
on_call_start[#on_call_start + 1] = function() moved_virtual_times = {} end

local function virtual_of(node)
  return moved_virtual_times[node] or number(call('HGET', VIRTUAL_TIMES, node))
end

-- ready: a child can be served; held: all children that wait are held or aside; aside: all are aside; empty.
local function condition(node)
  if call('EXISTS', ready_key(node)) == 1 then return 'ready' end
  if call('EXISTS', held_key(node)) == 1 then return 'held' end
  return call('EXISTS', aside_children_key(node)) == 1 and 'aside' or 'empty'
end

-- ready: jobs are queued; aside: jobs were set aside, and no other is queued; empty.
local function flow_condition(band, tenant, tbl)
  if call('EXISTS', flow_key(band, tenant, tbl)) == 1 then return 'ready' end
  return call('EXISTS', aside_flow_key(band, tenant, tbl)) == 1 and 'aside' or 'empty'
end

local function forget_virtual_time(node)
  moved_virtual_times[node] = nil
  call('DEL', idle_key(node))
  call('HDEL', VIRTUAL_TIMES, node)
end

-- Nodes below a band are leaves, whose children are tables.
local function is_leaf(node) return node:find('|', 1, true) end

-- The first member of a sorted set and its score, nil if there is none: the first job of a flow and its rank, the child of a
-- node that is next and its tag or turn.
local function first_of(key)
  local found = call('ZRANGE', key, 0, 0, 'WITHSCORES')
  return found[1], tonumber(found[2])
end

-- The condition of a node that a child has left; an empty one deletes its tags.
local function after_leaving(node)
  local now = condition(node)
  if now == 'empty' then forget_virtual_time(node) end
  return now
end

-- Removes the stored tag of a child that is not ready. Returns it as a number, at least the virtual time; one that was
-- aside may lie behind that. `rank`: of the first job of a table, whose turn is at least that.
local function take_tag(node, child, rank)
  local least = rank or virtual_of(node)
  for _, kept in ipairs({held_key(node), aside_children_key(node), not rank and idle_key(node) or nil}) do
    local tag = call('ZSCORE', kept, child)
    if tag then
      call('ZREM', kept, child)
      if kept == aside_children_key(node) and not rank then least = math.max(0, least - MAX_LAG) end
      return math.max(least, tonumber(tag))
    end
  end
  return least
end

-- Makes a child ready.
local function join(node, child, rank) call('ZADD', ready_key(node), take_tag(node, child, rank), child) end

local function is_ready(node, child) return call('ZSCORE', ready_key(node), child) end

-- Stores the tag of a child that waits without being served: one that is held, or aside.
local function keep(node, child, now, start)
  if now == 'held' then call('ZADD', held_key(node), start, child) end
  if now == 'aside' then call('ZADD', aside_children_key(node), start, child) end
end

-- Removes a ready child without a charge. `now` is its condition: a held one and one aside keep their tags, an empty one
-- only if the tag lies ahead of the virtual time; an empty table has no turn. Returns the condition of the node.
local function leave(node, child, now)
  local start = number(call('ZSCORE', ready_key(node), child))
  call('ZREM', ready_key(node), child)
  keep(node, child, now, start)
  local left = after_leaving(node)
  if left ~= 'empty' and now == 'empty' and not is_leaf(node) and start > virtual_of(node) then
    call('ZADD', idle_key(node), start, child)
  end
  return left
end

local function is_throttled(level, name, member) return call('ZSCORE', throttled_key(level .. '|' .. name), member) end

local function admit_tenant(band, tenant)
  if is_ready(band, tenant) or is_throttled('tenant', tenant, band) then return end
  join(band, tenant)
  if not is_ready(ROOT, band) then join(ROOT, band) end
end

-- A flow has its first job, of this rank, or is no longer throttled.
local function activate(band, tenant, tbl, rank)
  local leaf = leaf_node(band, tenant)
  if is_throttled('table', tbl, leaf) then return end
  join(leaf, tbl, rank)
  admit_tenant(band, tenant)
end

-- Moves the turn of a table whose first job is another now: a better one (`LT`) or a worse one (`GT`) of this rank.
local function move_turn(band, tenant, tbl, which, rank)
  local leaf = leaf_node(band, tenant)
  local kept = is_ready(leaf, tbl) and ready_key(leaf) or held_key(leaf)
  call('ZADD', kept, 'XX', which, rank, tbl)
end

local function leave_band(band, tenant, now)
  local left = leave(band, tenant, now)
  if left ~= 'ready' then leave(ROOT, band, left) end
end

-- A child that is held or aside has become empty. Returns the condition of the node.
local function remove_waiting(node, child)
  call('ZREM', held_key(node), child)
  call('ZREM', aside_children_key(node), child)
  return after_leaving(node)
end

-- A leaf that is not ready in its band has become empty.
local function remove_waiting_tenant(band, tenant)
  call('ZREM', throttled_key('tenant|' .. tenant), band)
  if remove_waiting(band, tenant) == 'empty' then remove_waiting(ROOT, band) end
end

-- A flow has lost its last queued job without being served. `now` is its condition: aside or empty.
local function deactivate(band, tenant, tbl, now)
  local leaf = leaf_node(band, tenant)
  call('ZREM', throttled_key('table|' .. tbl), leaf)
  local left
  if is_ready(leaf, tbl) then
    left = leave(leaf, tbl, now)
  elseif now == 'empty' then
    left = remove_waiting(leaf, tbl)
  else
    return
  end
  if left == 'ready' then return end
  if is_ready(band, tenant) then
    leave_band(band, tenant, left)
  elseif left == 'empty' then
    remove_waiting_tenant(band, tenant)
  end
end

local function throttle_tenant(band, tenant)
  call('ZADD', throttled_key('tenant|' .. tenant), 0, band)
  leave_band(band, tenant, 'held')
end

local function throttle_table(band, tenant, tbl)
  local leaf = leaf_node(band, tenant)
  call('ZADD', throttled_key('table|' .. tbl), 0, leaf)
  local left = leave(leaf, tbl, 'held')
  if left ~= 'ready' then leave_band(band, tenant, left) end
end

-- Readmits the flows of a table or tenant; one that is still at its limit is throttled again at the next claim.
local function unthrottle(level, name)
  local members = call('ZPOPMIN', throttled_key(level .. '|' .. name), MAX_UNTHROTTLED)
  for i = 1, #members, 2 do
    if level == 'table' then
      local band, tenant = members[i]:match('^(%d+)|(.*)$')
      local _, rank = first_of(flow_key(band, tenant, name))
      if rank then activate(band, tenant, name, rank) end
    elseif condition(leaf_node(members[i], name)) == 'ready' then
      admit_tenant(members[i], name)
    end
  end
end

-- The band that is served only while no other has a job that may start.
local BACKGROUND = '4'

-- Strict bands are served by rank and the background last, so their service moves no tag at the root.
local function is_strict(band) return tonumber(band) < strict_bands end

local function is_weighted(band) return not is_strict(band) and band ~= BACKGROUND end
