// Finished runs, newest first: what was rewritten, by whom, how long it took, and how it ended.
import type { JobSummary } from '../../api/schema';
import { duration } from '../../format/times';
import { formatRoute } from '../../navigation/route';
import { Badge } from '../../parts/badge';
import { Empty } from '../../parts/frame';
import { Ago, Bytes, Count } from '../../parts/values';

export function RecentRuns({ runs }: { runs: readonly JobSummary[] }) {
  if (runs.length === 0) return <Empty>No run has finished yet.</Empty>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Finished runs">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">Ended</th>
            <th scope="col">Table</th>
            <th scope="col">Partition</th>
            <th scope="col">Result</th>
            <th scope="col" class="right wide-only">
              Files replaced
            </th>
            <th scope="col" class="right wide-only">
              Bytes
            </th>
            <th scope="col" class="right wide-only">
              Time
            </th>
          </tr>
        </thead>
        <tbody>
          {runs.map(run => (
            <tr key={`${run.id} ${run.finished_at ?? ''}`}>
              <td>
                <Ago at={run.finished_at} />
              </td>
              <td>
                <a href={formatRoute(['tables', run.table_name])}>{run.table_name}</a>
              </td>
              <td class="text">{run.partition_label}</td>
              <td>
                <Badge state={run.result} title={run.error} />
              </td>
              <td class="right wide-only">
                <Count value={run.measured['files_replaced']} />
              </td>
              <td class="right wide-only">
                <Bytes value={run.measured['bytes']} />
              </td>
              <td class="right number wide-only">{taken(run)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function taken(run: JobSummary): string {
  if (run.started_at === null || run.finished_at === null) return '–';
  return duration((Date.parse(run.finished_at) - Date.parse(run.started_at)) / 1000);
}
