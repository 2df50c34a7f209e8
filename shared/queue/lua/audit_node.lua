#!lua
--[[
  audit_node: each child on this page of a node is ready, held or aside according to the nodes below it.

  KEYS[1]  prefix of the queue
  ARGV[1]  node
  ARGV[2]  which of its children (ready, held, aside)
  ARGV[3]  offset

  Output: {children that are left on this page, number of repairs}
]]
-- include: repair
local node, which, offset = ARGV[1], ARGV[2], tonumber(ARGV[3])
local PAGE = 100
local INDEXES = {ready = ready_key(node), held = held_key(node), aside = aside_children_key(node)}
local index = INDEXES[which]

local kept = 0
local children = call('ZRANGE', index, offset, offset + PAGE - 1)
for i = 1, #children do
  repair_child(node, children[i])
  if call('ZSCORE', index, children[i]) then kept = kept + 1 end
end
repair_ancestors(node)
return {kept, repaired}
