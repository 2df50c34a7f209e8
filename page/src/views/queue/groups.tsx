// Groups of the queue at a glance: actors, jobs, slot time, and quotas that promise more than there is.
import { api, read } from '../../api/client';
import type { GroupView } from '../../api/schema';
import { anyTable, useResource } from '../../api/use-resource';
import { percent, plural } from '../../format/numbers';
import { duration } from '../../format/times';
import { formatRoute } from '../../navigation/route';
import { Badge } from '../../parts/badge';
import { Card } from '../../parts/frame';
import { type Column, List } from '../../parts/list';
import { Count, Meter } from '../../parts/values';

export function Groups({ groups, chosen }: { groups: readonly GroupView[]; chosen: string }) {
  const rows = useResource(
    'tables of groups',
    signal => read(api.GET('/v1/table-rows', { params: { query: { limit: 1 } }, signal })),
    anyTable,
  );
  const tables = rows.data?.groups ?? {};
  const name: Column<GroupView> = {
    head: 'Group',
    isName: true,
    show: one => (
      <>
        <a href={formatRoute(['queue'], { group: one.group })} aria-current={one.group === chosen ? 'true' : undefined}>
          {one.group}
        </a>{' '}
        {one.is_paused && <Badge state="paused" />}
      </>
    ),
  };
  const belonging: Column<GroupView> = {
    head: 'Tables',
    place: 'right',
    show: one => (
      <a href={formatRoute(['tables'], { group: one.group })}>
        <Count value={tables[one.group] ?? 0} />
        <span class="hidden"> tables of {one.group}</span>
      </a>
    ),
  };
  return (
    <Card title="Groups" note="each has its own actors, jobs and quotas; slot time of the last hour">
      <List
        label="Groups"
        region="groups"
        rows={groups}
        keyOf={one => one.group}
        columns={[name, belonging, ...COLUMNS]}
        rowClass={one => (one.group === chosen ? 'chosen' : '')}
      />
    </Card>
  );
}

const COLUMNS: readonly Column<GroupView>[] = [
  {
    head: 'Actors',
    place: 'wide-only',
    show: one => (one.actors === 0 ? 'none' : `${plural(one.actors, 'actor')}, ${plural(one.slots, 'slot')}`),
  },
  { head: 'Running', place: 'right wide-only', show: one => <Count value={one.running} /> },
  { head: 'Waiting', place: 'right wide-only', show: one => <Count value={one.waiting} /> },
  {
    head: 'Oldest',
    place: 'right wide-only',
    kind: 'number',
    show: one => (one.oldest_wait_s === 0 ? '–' : duration(one.oldest_wait_s)),
  },
  {
    head: 'Slot time',
    show: one => (
      <span class="metered">
        <Meter value={one.occupation_ratio} tone="busy" />
        <span class="number">{percent(one.occupation_ratio)}</span>
      </span>
    ),
  },
  {
    head: 'Quotas',
    title: one => (one.promised_ratio === 0 ? '' : `${percent(one.promised_ratio)} of its slots are promised`),
    show: one => <Promised group={one} />,
  },
];

function Promised({ group }: { group: GroupView }) {
  if (group.promised_ratio === 0) return <span class="missing">none</span>;
  return (
    <>
      <span class="number">{percent(group.promised_ratio)}</span> {group.is_oversold && <Badge state="oversold" />}
    </>
  );
}
