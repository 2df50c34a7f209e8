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
    if call('EXISTS', flow_key(band, tenant, child)) == 0 then return 'empty' end
    return is_throttled('table', child, node) and 'held' or 'ready'
  end
  local below = condition(leaf_node(node, child))
  return below == 'ready' and is_throttled('tenant', child, node) and 'held' or below
end

-- Puts a child where it should be: among the ready ones, among the held ones, or nowhere. Its tag is kept.
local function repair_child(node, child)
  local wanted = expected_condition(node, child)
  local ready, held = is_ready(node, child), call('ZSCORE', held_key(node), child)
  if (ready and 'ready' or held and 'held' or 'empty') == wanted and not (ready and held) then return end
  count_repair()
  if wanted == 'ready' then
    if not ready then join(node, child) else call('ZREM', held_key(node), child) end
  elseif wanted == 'held' then
    local start = ready or held or math.max(virtual_of(node), number(take_tag(node, child)))
    call('ZREM', ready_key(node), child)
    call('ZADD', held_key(node), start, child)
  else
    call('ZREM', held_key(node), child)
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
