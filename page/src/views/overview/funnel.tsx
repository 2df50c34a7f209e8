// From commits to rewrites: how many partitions were touched, and at which stage each decision ended.
import { Empty } from '../../parts/frame';
import { Count } from '../../parts/values';

const STAGES = [
  ['commits', 'Commits by writers', 'whole'],
  ['partitions_touched', 'Partitions touched by them', 'whole'],
  ['pruned_by_entropy', 'Expected gain below the tolerance', 'pruned'],
  ['pruned_by_levels', 'A merge now would be repeated later', 'pruned'],
  ['deferred', 'Deferred to the writers of the table', 'pruned'],
  ['enqueued', 'Eligible for a rewrite', 'whole'],
  ['rewrites', 'Rewrites committed', 'done'],
] as const;

export function Funnel({ counts }: { counts: Readonly<Record<string, number>> }) {
  const stages = STAGES.filter(([name]) => counts[name] !== undefined);
  const most = Math.max(1, ...stages.map(([name]) => counts[name] ?? 0));
  if (stages.length === 0) return <Empty>No commit has been applied yet.</Empty>;
  return (
    <ol class="funnel">
      {stages.map(([name, text, tone]) => (
        <li key={name}>
          <span class="funnel-text">{text}</span>
          <span class="funnel-bar">
            <span class={tone} style={{ width: `${(100 * (counts[name] ?? 0)) / most}%` }} />
          </span>
          <Count value={counts[name]} />
        </li>
      ))}
    </ol>
  );
}
