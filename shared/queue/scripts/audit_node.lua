#!lua
--[[
  audit_node: the children on this page of a node have something below them.

  KEYS[1]  prefix of the queue
  ARGV[1]  node
  ARGV[2]  offset

  Output: {children that are left on this page, number of things mended}
]]
-- include: mend
local node, offset = ARGV[1], tonumber(ARGV[2])
local PAGE = 100

local function below(child)
  if node == ROOT then return ready_key(child) end
  local band, tenant = node:match('^(%d+)|(.*)$')
  if band then return flow_key(band, tenant, child) end
  return ready_key(leaf_node(node, child))
end

local kept = 0
local children = call('ZRANGE', ready_key(node), offset, offset + PAGE - 1)
for i = 1, #children do
  if call('EXISTS', below(children[i])) == 1 then
    kept = kept + 1
  else
    leave(node, children[i])
    mend()
  end
end
return {kept, mended}
