// Jobs waiting and running since this view was opened, from the event stream.
import { useEffect, useState } from 'preact/hooks';
import { Card } from '../../parts/frame';
import { TimeChart } from '../../parts/time-chart';

interface Sample {
  readonly at: number;
  readonly waiting: number;
  readonly running: number;
}

const SAMPLES = 600;
const STEP_MS = 2_000;

export function QueueChart({ depth }: { depth: Readonly<Record<string, number>> }) {
  const waiting = (depth['queued'] ?? 0) + (depth['delayed'] ?? 0);
  const running = depth['leased'] ?? 0;
  const [samples, setSamples] = useState<readonly Sample[]>([]);
  useEffect(() => {
    const add = () =>
      document.visibilityState === 'visible' &&
      setSamples(last => [...last.slice(1 - SAMPLES), { at: Date.now() / 1000, waiting, running }]);
    add();
    const timer = setInterval(add, STEP_MS);
    return () => clearInterval(timer);
  }, [waiting, running]);
  return (
    <Card title="Queue" note="since this view was opened">
      <TimeChart
        label={`Jobs over time: ${waiting} waiting and ${running} running at present`}
        times={samples.map(one => one.at)}
        series={[
          { label: 'Waiting', color: '--series-1', values: samples.map(one => one.waiting), steps: true, fill: true },
          { label: 'Running', color: '--series-2', values: samples.map(one => one.running), steps: true },
        ]}
        height={190}
      />
    </Card>
  );
}
