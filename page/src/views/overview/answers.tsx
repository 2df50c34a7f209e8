// The first screen answers three questions: is it working, what did it do, what will it do.
import type { ComponentChildren } from 'preact';
import type { DeciderStatus, FleetHistoryView } from '../../api/schema';
import { bytes, count, plural, ratio } from '../../format/numbers';
import { duration, relative } from '../../format/times';
import { usedText } from '../../format/usage';
import { formatRoute } from '../../navigation/route';
import { Card } from '../../parts/frame';
import { now } from '../../parts/values';

interface Known {
  readonly status: DeciderStatus;
  readonly history: FleetHistoryView | undefined;
  readonly conditions: Readonly<Record<string, number>>;
  readonly problems: number;
}

export function Answers(known: Known) {
  return (
    <div class="answers">
      <Answer title="Is it working?" tone={known.problems === 0 ? 'good' : 'bad'} lines={isWorking(known)} />
      <Answer title="What did it do?" lines={didDo(known)} />
      <Answer title="What will it do?" lines={willDo(known)} />
    </div>
  );
}

function Answer({ title, tone = '', lines }: { title: string; tone?: string; lines: ComponentChildren[] }) {
  const [first, ...others] = lines;
  return (
    <Card title={title} class={`answer ${tone}`}>
      <p class="headline">{first}</p>
      {others.map((line, at) => (
        <p key={at}>{line}</p>
      ))}
    </Card>
  );
}

function isWorking({ status, problems }: Known): ComponentChildren[] {
  const { actors, queue, tables } = status;
  const present = (actors['working'] ?? 0) + (actors['idle'] ?? 0);
  return [
    problems === 0 ? 'Yes.' : `Not all of it: ${plural(problems, 'problem')} below.`,
    `${plural(tables ?? 0, 'table')} followed, ${plural(present, 'actor')}, ${plural(queue.depth['leased'] ?? 0, 'job')} running.`,
  ];
}

function didDo({ status, history }: Known): ComponentChildren[] {
  const first = history?.points[0];
  const last = history?.points.at(-1);
  const { steady_write_amplification: steady } = status.savings.amplification;
  const cost =
    steady === null ? '' : ` Since the backlog was done, ${ratio(steady)} bytes are rewritten per byte written.`;
  if (
    history === undefined ||
    first === undefined ||
    last === undefined ||
    first === last ||
    last.rewrites < first.rewrites
  ) {
    const { files_removed: removed, bytes_rewritten: read } = status.savings;
    return [
      removed === 0 ? 'No rewrite yet.' : `${plural(removed, 'file')} fewer.`,
      `${bytes(read)} rewritten since the start.${cost}`,
    ];
  }
  const grown = (name: 'rewrites' | 'files_replaced' | 'files_written' | 'bytes_replaced' | 'commits') =>
    last[name] - first[name];
  const span = duration((Date.parse(last.at ?? '') - Date.parse(first.at ?? '')) / 1000);
  return [
    grown('rewrites') === 0
      ? 'No rewrite.'
      : `${count(grown('files_replaced'))} files became ${count(grown('files_written'))}.`,
    `In the last ${span}: ${plural(grown('commits'), 'commit')} followed, ${plural(grown('rewrites'), 'rewrite')}, ${bytes(grown('bytes_replaced'))} read, for ${usedText(history.used)}.${cost}`,
  ];
}

function willDo({ status, history, conditions }: Known): ComponentChildren[] {
  const { depth } = status.queue;
  const waiting = (depth['queued'] ?? 0) + (depth['delayed'] ?? 0);
  const paused = conditions['paused'] ?? 0;
  const left = history?.backlog.left_bytes ?? 0;
  const ends = history?.backlog.ends_at ?? null;
  const end = ends === null ? '' : `, done ${relative(new Date(ends), now.value)} at the present pace`;
  return [
    waiting === 0 ? 'Nothing waits.' : `${plural(waiting, 'job')} wait.`,
    left === 0
      ? 'The existing files are rewritten; each new commit is evaluated.'
      : `Of the existing files, ${bytes(left)} are still to be rewritten, once${end}.`,
    ...(paused === 0
      ? []
      : [<a href={formatRoute(['tables'], { condition: 'paused' })}>{plural(paused, 'table')} paused</a>]),
  ];
}
