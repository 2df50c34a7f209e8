// History: what the table was over hours or days, what happened to it meanwhile, and what rewriting it was worth.
import { useState } from 'preact/hooks';
import { api, read } from '../../api/client';
import type { MarkView, TableHistoryView, TableStatus, UsageView } from '../../api/schema';
import { never, useReload, useResource } from '../../api/use-resource';
import { bytes, count, plural } from '../../format/numbers';
import { perHour } from '../../format/per-hour';
import { duration } from '../../format/times';
import { usedDetail, usedText } from '../../format/usage';
import { Card, Empty, Figure, Figures, Loaded } from '../../parts/frame';
import { HistoryRange } from '../../parts/history-range';
import { TimeChart } from '../../parts/time-chart';
import { Ago } from '../../parts/values';

/** The point of now moves; samples are taken once an hour. */
const RELOAD_MS = 60_000;

const MARKS_SHOWN = 30;

const WEEK_H = 168;

export function HistoryTab({ table }: { table: TableStatus }) {
  const [hours, setHours] = useState<number>(WEEK_H);
  const path = { name: table.name };
  const found = useResource(
    `history of ${table.name} ${hours}`,
    signal => read(api.GET('/v1/tables/{name}/history', { params: { path, query: { hours } }, signal })),
    never,
  );
  useReload(found, RELOAD_MS);
  return (
    <Loaded of={found}>
      {history => (
        <div class="columns layout">
          <div class="stack">
            <Worth worth={history.worth} />
            <Marks marks={history.marks} />
          </div>
          <Card title="History" note={<HistoryRange hours={hours} choose={setHours} />}>
            <Charts history={history} />
          </Card>
        </div>
      )}
    </Loaded>
  );
}

function Worth({ worth }: { worth: TableHistoryView['worth'] }) {
  const tone = worth.result === 'above_cost' ? 'good' : worth.result === 'below_cost' ? 'bad' : '';
  const reads = worth.reads_per_hour;
  return (
    <Card title="What rewriting was worth" note="last 7 days at most" class={`answer ${tone}`}>
      <p class="worth">{worth.text.charAt(0).toUpperCase() + worth.text.slice(1)}.</p>
      <Figures>
        <Figure
          label="Opens avoided"
          note={reads === null ? 'no reads are reported' : `${count(reads)} reads per hour`}
        >
          {worth.opens_avoided === null ? '–' : count(worth.opens_avoided)}
        </Figure>
        <Figure label="Used by runs" note={usedDetail(worth.spent)}>
          {amount(worth.spent)}
        </Figure>
        {worth.saved !== null && (
          <Figure label="Saved readers" note="of opening files">
            {amount(worth.saved)}
          </Figure>
        )}
      </Figures>
    </Card>
  );
}

/** Money where prices are set, core time otherwise. */
function amount(usage: UsageView): string {
  return usage.cost === null ? duration(usage.core_s) : usedText(usage);
}

const HAPPENED: Readonly<Record<MarkView['kind'], string>> = {
  paused: 'Paused',
  resumed: 'Resumed',
  quarantined: 'Job quarantined',
  properties: 'Properties changed',
  advice: 'Advice applied',
};

function Marks({ marks }: { marks: readonly MarkView[] }) {
  const hidden = marks.length - MARKS_SHOWN;
  return (
    <Card title="What happened">
      {marks.length === 0 ? (
        <Empty>No pause, no failed job, no change of properties.</Empty>
      ) : (
        <ol class="marks" reversed start={marks.length}>
          {marks
            .slice(-MARKS_SHOWN)
            .toReversed()
            .map(mark => (
              <li key={`${mark.at} ${mark.kind} ${mark.detail}`}>
                <strong>{HAPPENED[mark.kind]}</strong> <Ago at={mark.at} />
                {mark.detail !== '' && <div class="note">{mark.detail}</div>}
              </li>
            ))}
        </ol>
      )}
      {hidden > 0 && <p class="note">{plural(hidden, 'older one')}</p>}
    </Card>
  );
}

function Charts({ history: { points, marks } }: { history: TableHistoryView }) {
  if (points.length < 2) return <Empty>Two samples, an hour apart, are the beginning of a chart.</Empty>;
  const times = points.map(one => Date.parse(one.at ?? '') / 1000);
  const drawn = marks.map((mark, at) => ({ atS: Date.parse(mark.at ?? '') / 1000, text: String(at + 1) }));
  return (
    <>
      <TimeChart
        label="Files of the table over time, and how many would do"
        times={times}
        marks={drawn}
        series={[
          { label: 'Files', color: '--series-1', values: points.map(one => one.files), fill: true },
          { label: 'Small', color: '--series-3', values: points.map(one => one.small_files) },
          { label: 'Would do', color: '--series-2', values: points.map(one => one.files_needed) },
        ]}
        height={190}
      />
      <TimeChart
        label="Bytes of the table rewritten per hour over time"
        times={times}
        marks={drawn}
        series={[
          { label: 'Rewritten per hour', color: '--series-3', values: perHour(points, 'bytes_replaced'), fill: true },
          { label: 'Written per hour', color: '--series-1', values: perHour(points, 'bytes_added') },
        ]}
        format={bytes}
        height={150}
      />
      <TimeChart
        label="Core-seconds of runs on the table per hour over time"
        times={times}
        marks={drawn}
        series={[
          { label: 'Core-seconds per hour', color: '--series-3', values: perHour(points, 'core_s'), fill: true },
        ]}
        height={120}
      />
      <TimeChart
        label="Runs of the table's jobs per hour over time"
        times={times}
        marks={drawn}
        series={[
          { label: 'Runs per hour', color: '--series-1', values: perHour(points, 'jobs_run'), fill: true },
          { label: 'Failed', color: '--series-2', values: perHour(points, 'jobs_failed') },
        ]}
        height={120}
      />
    </>
  );
}
