// The rules of a replay side by side: files, bytes rewritten, and cost.
import type { RuleReplayed } from '../../api/schema';
import { ratio } from '../../format/numbers';
import { duration } from '../../format/times';
import { type Column, List } from '../../parts/list';
import { Bytes, Count } from '../../parts/values';

const COLUMNS: Column<RuleReplayed>[] = [
  { head: 'Rule', isName: true, show: rule => rule.title },
  { head: 'Files, mean', place: 'right', show: rule => <Count value={Math.round(rule.files_mean)} /> },
  { head: 'Files at the end', place: 'right wide-only', show: rule => <Count value={rule.files_at_end} /> },
  { head: 'Rewrites', place: 'right wide-only', show: rule => <Count value={rule.jobs} /> },
  { head: 'Bytes rewritten', place: 'right', show: rule => <Bytes value={rule.bytes_rewritten} /> },
  {
    head: 'Per byte added',
    place: 'right wide-only',
    kind: 'number',
    show: rule => ratio(rule.write_amplification),
  },
  {
    head: 'Cost',
    place: 'right',
    kind: 'number',
    title: rule => `${rule.cost_s} core-seconds`,
    show: rule => duration(rule.cost_s),
  },
];

export function RuleList({ rules }: { rules: readonly RuleReplayed[] }) {
  const cheapest = Math.min(...rules.map(rule => rule.cost_s));
  return (
    <List
      label="Cost of each rule"
      rows={rules}
      keyOf={rule => rule.name}
      columns={COLUMNS}
      rowClass={rule => (rule.cost_s === cheapest ? 'best' : '')}
    />
  );
}
