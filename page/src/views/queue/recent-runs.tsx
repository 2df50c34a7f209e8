// Finished runs, newest first: what was rewritten, by whom, how long it took, and how it ended.
import type { JobSummary } from '../../api/schema';
import { duration } from '../../format/times';
import { formatRoute } from '../../navigation/route';
import { Badge } from '../../parts/badge';
import { Empty } from '../../parts/frame';
import { type Column, List } from '../../parts/list';
import { Ago, Bytes, Count } from '../../parts/values';

const COLUMNS: Column<JobSummary>[] = [
  { head: 'Ended', show: run => <Ago at={run.finished_at} /> },
  {
    head: 'Table',
    kind: 'text',
    show: run => (
      <>
        <a href={formatRoute(['tables', run.table_name])}>{run.table_name}</a>
        <span class="note block">{run.partition_label}</span>
      </>
    ),
  },
  { head: 'Result', show: run => <Badge state={run.result} title={run.error} /> },
  { head: 'Files replaced', place: 'right wide-only', show: run => <Count value={run.measured['files_replaced']} /> },
  { head: 'Bytes', place: 'right wide-only', show: run => <Bytes value={run.measured['bytes']} /> },
  { head: 'Time', place: 'right wide-only', kind: 'number', show: taken },
];

export function RecentRuns({ runs }: { runs: readonly JobSummary[] }) {
  if (runs.length === 0) return <Empty>No run has finished yet.</Empty>;
  return (
    <List label="Finished runs" rows={runs} keyOf={run => `${run.id} ${run.finished_at ?? ''}`} columns={COLUMNS} />
  );
}

function taken(run: JobSummary): string {
  if (run.started_at === null || run.finished_at === null) return '–';
  return duration((Date.parse(run.finished_at) - Date.parse(run.started_at)) / 1000);
}
