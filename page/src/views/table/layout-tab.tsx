// Layout: files per size level, and files and entropy over the latest commits, from the table's own log.
import { useEffect, useState } from 'preact/hooks';
import { api, read, sentence } from '../../api/client';
import type { LayoutPointView, TableStatus } from '../../api/schema';
import { bytes, count, percent } from '../../format/numbers';
import { Card, Empty } from '../../parts/frame';
import { barsOf, Histogram } from '../../parts/histogram';
import { TimeChart } from '../../parts/time-chart';
import { ascendingTimes, mergedPoints } from './layout-points';

const COMMITS = 300;

export function LayoutTab({ table }: { table: TableStatus }) {
  const { points, isRead, problem } = usePoints(table);
  const target = table.policy.values.find(one => one.property === 'lakewright.target-file-size')?.value;
  const times = ascendingTimes(points);
  return (
    <div class="columns layout">
      <Card title="Files by size" note={typeof target === 'number' ? `target ${bytes(target)}` : undefined}>
        <Histogram bars={barsOf(table.layout)} now="Files" />
      </Card>
      <div class="stack">
        {problem !== '' && <p class="problem">{problem}</p>}
        <Card
          title="Files"
          note={points.length === 0 ? undefined : `last ${count(points.length)} commits, rewrites included`}
        >
          {points.length === 0 ? (
            <Empty>{isRead || table.state === null ? 'No commit has been read yet.' : 'Loading…'}</Empty>
          ) : (
            <TimeChart
              label={`Files over time: ${table.layout.files} now, ${table.layout.small_files} of them small`}
              times={times}
              series={[
                { label: 'Files', color: '--series-1', values: points.map(one => one.files), steps: true, fill: true },
                { label: 'Small files', color: '--series-2', values: points.map(one => one.small_files), steps: true },
              ]}
            />
          )}
        </Card>
        {points.length > 0 && (
          <Card title="File size entropy (MSE)" note="its root, of the target; one small file has nearly 100%">
            <TimeChart
              label={`File size entropy over time: ${percent(table.layout.rms_shortfall)} now`}
              times={times}
              series={[
                {
                  label: 'Shortfall',
                  color: '--series-3',
                  values: points.map(one => one.rms_shortfall),
                  steps: true,
                  fill: true,
                },
              ]}
              format={percent}
              max={1}
              height={160}
            />
          </Card>
        )}
      </div>
    </div>
  );
}

/** All points at first; then only those of commits that are newer than the last point. */
function usePoints(table: TableStatus): { points: readonly LayoutPointView[]; isRead: boolean; problem: string } {
  const [known, setPoints] = useState<readonly LayoutPointView[] | null>(null);
  const points = known ?? [];
  const [problem, setProblem] = useState('');
  const version = table.state?.version;
  useEffect(() => {
    if (version === undefined) return undefined;
    const ended = new AbortController();
    const last = points.at(-1)?.version;
    const query = last === undefined || last > version ? { commits: COMMITS } : { commits: COMMITS, after: last };
    const path = { name: table.name };
    read(api.GET('/v1/tables/{name}/layout-history', { params: { path, query }, signal: ended.signal }))
      .then(found => {
        setPoints(last => mergedPoints('after' in query ? (last ?? []) : [], found.points, COMMITS));
        setProblem('');
      })
      .catch((failure: unknown) => {
        if (!ended.signal.aborted) setProblem(sentence(failure));
      });
    return () => ended.abort();
  }, [table.name, version]);
  return { points, isRead: known !== null, problem };
}
