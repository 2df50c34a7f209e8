-- What audits share: a job's index and path are computed again from its hash, and a difference is repaired. Nothing is
-- written to a consistent store.
-- include: index
local repaired
on_call_start[#on_call_start + 1] = function() repaired = 0 end

local function count_repair() repaired = repaired + 1 end

-- Condition of a child of a node, derived from the nodes below it.
local function expected_condition(node, child)
  if node == ROOT then return condition(child) end
  local band, tenant = node:match('^(%d+)|(.*)$')
  if band then
    local now = flow_condition(band, tenant, child)
    return now == 'ready' and is_throttled('table', child, node) and 'held' or now
  end
  local below = condition(leaf_node(node, child))
  return below == 'ready' and is_throttled('tenant', child, node) and 'held' or below
end

local function waits(condition_of_child) return condition_of_child == 'held' or condition_of_child == 'aside' end

-- The rank of a table's first job, 0 if none is queued; nil for a child of another node.
local function rank_of_child(node, child)
  local band, tenant = node:match('^(%d+)|(.*)$')
  if not band then return nil end
  local _, rank = first_of(flow_key(band, tenant, child))
  return rank or 0
end

-- A turn is never before the rank of the table's first job. One is, where a release that kept start tags of tables wrote it.
local function repair_turn(kept, child, turn, rank)
  if not rank or tonumber(turn) >= rank then return end
  count_repair()
  call('ZADD', kept, rank, child)
end

-- Puts a child where it should be: among the ready ones, among those that wait, or nowhere. Its tag is kept. Whether one
-- that waits is held or aside is decided when it ceases to be ready, and makes no difference later.
local function repair_child(node, child)
  local wanted = expected_condition(node, child)
  local ready, held = is_ready(node, child), call('ZSCORE', held_key(node), child)
  local aside = call('ZSCORE', aside_children_key(node), child)
  local now = ready and 'ready' or held and 'held' or aside and 'aside' or 'empty'
  local is_twice, rank = (ready and (held or aside)) or (held and aside), rank_of_child(node, child)
  if (now == wanted or waits(now) and waits(wanted)) and not is_twice then
    if now ~= 'empty' then
      repair_turn(ready and ready_key(node) or held and held_key(node) or aside_children_key(node), child,
        ready or held or aside, rank)
    end
    return
  end
  count_repair()
  if wanted == 'ready' then
    if not ready then join(node, child, rank) end
    call('ZREM', held_key(node), child)
    call('ZREM', aside_children_key(node), child)
  elseif waits(wanted) then
    local start = ready or held or aside or rank or take_tag(node, child)
    call('ZREM', ready_key(node), child)
    call('ZREM', held_key(node), child)
    call('ZREM', aside_children_key(node), child)
    keep(node, child, wanted, start)
  else
    call('ZREM', held_key(node), child)
    call('ZREM', aside_children_key(node), child)
    if ready then leave(node, child, 'empty') else after_leaving(node) end
  end
end

-- The node itself and what is above it.
local function repair_ancestors(node)
  if node == ROOT then return end
  local band, tenant = node:match('^(%d+)|(.*)$')
  if band then repair_child(band, tenant) end
  repair_child(ROOT, band or node)
end

-- The path to a flow; unlike in `activate`, each step is checked, because any key may be missing.
local function repair_path(band, tenant, tbl)
  local leaf = leaf_node(band, tenant)
  repair_child(leaf, tbl)
  repair_ancestors(leaf)
end
