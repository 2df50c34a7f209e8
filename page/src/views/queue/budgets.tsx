// Budgets of tenants and of the queue: what their jobs may use, and have used.
import type { QueueView } from '../../api/schema';
import { Card } from '../../parts/frame';
import { type Column, List } from '../../parts/list';
import { Ago, Meter } from '../../parts/values';

type Budget = QueueView['budgets'][number];

const COLUMNS: readonly Column<Budget>[] = [
  { head: 'Of', isName: true, kind: 'text', show: one => (one.scope === 'queue' ? 'the queue' : one.name) },
  { head: 'Budget', kind: 'text', show: one => one.budget },
  {
    head: 'Used',
    show: one =>
      one.used_ratio === null ? (
        'no prices in its currency'
      ) : (
        <Meter
          value={Math.min(1, one.used_ratio)}
          tone={one.used_ratio < 1 ? 'busy' : 'bad'}
          label={`${Math.round(100 * one.used_ratio)}% used`}
        />
      ),
  },
  { head: 'Renewed', place: 'wide-only', show: one => <Ago at={one.renewed_at} /> },
];

export function Budgets({ budgets }: { budgets: readonly Budget[] }) {
  return budgets.length === 0 ? null : (
    <Card title="Budgets" note="what jobs may use, with the most that running ones are predicted to">
      <List label="Budgets" rows={budgets} keyOf={one => `${one.scope} ${one.name} ${one.budget}`} columns={COLUMNS} />
    </Card>
  );
}
