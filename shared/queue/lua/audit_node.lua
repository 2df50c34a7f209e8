#!lua
--[[
  audit_node: each child on this page of a node is ready or held according to the nodes below it.

  KEYS[1]  prefix of the queue
  ARGV[1]  node
  ARGV[2]  which of its children (ready, held)
  ARGV[3]  offset

  Output: {children that are left on this page, number of repairs}
]]
-- include: repair
local node, which, offset = ARGV[1], ARGV[2], tonumber(ARGV[3])
local PAGE = 100
local index = which == 'ready' and ready_key(node) or held_key(node)

local kept = 0
local children = call('ZRANGE', index, offset, offset + PAGE - 1)
for i = 1, #children do
  repair_child(node, children[i])
  if call('ZSCORE', index, children[i]) then kept = kept + 1 end
end
repair_ancestors(node)
return {kept, repaired}
