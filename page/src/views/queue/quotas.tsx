// Quotas of the tables of a group, and how much of them each has used.
import type { GroupView } from '../../api/schema';
import { percent, plural } from '../../format/numbers';
import { formatRoute } from '../../navigation/route';
import { Badge } from '../../parts/badge';
import { Card } from '../../parts/frame';
import { type Column, List } from '../../parts/list';
import { Meter } from '../../parts/values';
import { OVERSOLD } from './shares';

type Quota = GroupView['quotas'][number];

const COLUMNS: readonly Column<Quota>[] = [
  {
    head: 'Table',
    isName: true,
    kind: 'text',
    show: one => <a href={formatRoute(['tables', one.table_name])}>{one.table_name}</a>,
  },
  { head: 'Quota', place: 'right', kind: 'number', show: one => slots(one.quota) },
  {
    head: 'Used',
    show: one => (
      <>
        <span class="metered">
          <Meter value={one.occupation_ratio} tone="busy" />
          <span class="number">{percent(one.occupation_ratio)}</span>
        </span>{' '}
        {one.occupation_ratio > OVERSOLD && <Badge state="oversold" />}
      </>
    ),
  },
];

/** A share of the group's slots, or so many of them. */
function slots(quota: string): string {
  return quota.endsWith('%') ? quota : plural(Number(quota), 'slot');
}

export function Quotas({ group }: { group: GroupView }) {
  if (group.quotas.length === 0) return null;
  const note = group.is_oversold
    ? `${percent(group.promised_ratio)} of the slots are promised: each table gets the same part of its quota`
    : `${percent(group.promised_ratio)} of the slots are promised`;
  return (
    <Card title="Quotas of tables" note={note}>
      <List label="Quotas" region="tall" rows={group.quotas} keyOf={one => one.table} columns={COLUMNS} />
    </Card>
  );
}
