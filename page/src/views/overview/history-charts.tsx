// What the tables were over hours or days, from the samples that the decider keeps: it shows what was before this view.
import { useState } from 'preact/hooks';
import { api, read } from '../../api/client';
import type { FleetHistoryView } from '../../api/schema';
import { never, type Resource, useReload, useResource } from '../../api/use-resource';
import { bytes } from '../../format/numbers';
import { perHour } from '../../format/per-hour';
import { Card, Empty } from '../../parts/frame';
import { HistoryRange } from '../../parts/history-range';
import { TimeChart } from '../../parts/time-chart';

/** Samples are taken once a minute. */
const SAMPLE_MS = 60_000;

export function useHistory(hours: number): Resource<FleetHistoryView> {
  const found = useResource(
    `history ${hours}`,
    signal => read(api.GET('/v1/history', { params: { query: { hours } }, signal })),
    never,
  );
  useReload(found, SAMPLE_MS);
  return found;
}

export function HistoryCharts() {
  const [hours, setHours] = useState<number>(24);
  const { data } = useHistory(hours);
  const points = data?.points ?? [];
  const times = points.map(one => Date.parse(one.at ?? '') / 1000);
  const range = <HistoryRange hours={hours} choose={setHours} />;
  if (points.length < 2) {
    return (
      <Card title="History" note={range}>
        {data === undefined ? (
          <p class="loading">Loading…</p>
        ) : (
          <Empty>Two samples, a minute apart, are the beginning of a chart.</Empty>
        )}
      </Card>
    );
  }
  return (
    <Card title="History" note={range}>
      <TimeChart
        label="Files of all tables over time, and how many would do"
        times={times}
        series={[
          { label: 'Files', color: '--series-1', values: points.map(one => one.files), fill: true },
          { label: 'Would do', color: '--series-2', values: points.map(one => one.files_needed) },
        ]}
        height={150}
      />
      <TimeChart
        label="Bytes rewritten per hour over time"
        times={times}
        series={[
          { label: 'Rewritten per hour', color: '--series-3', values: perHour(points, 'bytes_replaced'), fill: true },
          { label: 'Written per hour', color: '--series-1', values: perHour(points, 'bytes_added') },
        ]}
        format={bytes}
        height={130}
      />
      <TimeChart
        label="Events received and commits per hour over time"
        times={times}
        series={[
          { label: 'Events per hour', color: '--series-1', values: perHour(points, 'events_received'), fill: true },
          { label: 'Commits per hour', color: '--series-2', values: perHour(points, 'commits') },
        ]}
        height={110}
      />
      <TimeChart
        label="Core-seconds of runs per hour over time"
        times={times}
        series={[
          { label: 'Core-seconds per hour', color: '--series-3', values: perHour(points, 'core_s'), fill: true },
        ]}
        height={110}
      />
      <TimeChart
        label="Jobs that wait and run over time"
        times={times}
        series={[
          {
            label: 'Jobs waiting',
            color: '--series-1',
            values: points.map(one => one.waiting),
            steps: true,
            fill: true,
          },
          { label: 'Running', color: '--series-2', values: points.map(one => one.running), steps: true },
        ]}
        height={110}
      />
    </Card>
  );
}
