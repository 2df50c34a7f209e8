// Files over time under each rule of a replay.
import type { RuleReplayed } from '../../api/schema';
import { TimeChart } from '../../parts/time-chart';
import { alignedCurves } from './aligned-curves';

const COLORS = [
  '--series-4',
  '--series-1',
  '--series-2',
  '--series-3',
  '--series-5',
  '--series-6',
  '--series-7',
  '--series-8',
  '--series-9',
] as const;

export function RuleChart({ rules }: { rules: readonly RuleReplayed[] }) {
  const { times, values } = alignedCurves(rules.map(rule => rule.curve));
  return (
    <TimeChart
      label={`Files over time under ${rules.map(rule => rule.title).join(', ')}`}
      times={times.map(ms => ms / 1000)}
      series={rules.map((rule, index) => ({
        label: rule.title,
        color: COLORS[index % COLORS.length] ?? '--series-1',
        values: values[index] ?? [],
        steps: true,
      }))}
      height={260}
    />
  );
}
