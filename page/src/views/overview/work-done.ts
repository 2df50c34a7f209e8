// What was done in a day, in two sentences, from the counters as they are now.
import type { DeciderStatus, FleetHistoryView } from '../../api/schema';
import { bytes, count, plural, ratio } from '../../format/numbers';
import { duration } from '../../format/times';
import { usedText } from '../../format/usage';

type Counter = 'rewrites' | 'files_replaced' | 'files_written' | 'bytes_replaced' | 'commits';

/** Work since the first sample of the day; since the start where there is none, or where the counters began again. */
export function workDone(
  status: Pick<DeciderStatus, 'funnel' | 'savings'>,
  history: FleetHistoryView | undefined,
  nowMs: number,
): string[] {
  const first = history?.points[0];
  const from = first !== undefined && (status.funnel['commits'] ?? 0) < first.commits ? undefined : first;
  const grown = (name: Counter) => (status.funnel[name] ?? 0) - (from?.[name] ?? 0);
  const seconds = from === undefined ? 0 : Math.max(1, (nowMs - Date.parse(from.at ?? '')) / 1000);
  const span = from === undefined ? 'Since the start' : `In the last ${duration(seconds)}`;
  const { steady_write_amplification: steady } = status.savings.amplification;
  const cost =
    steady === null ? '' : ` Since the backlog was done, ${ratio(steady)} bytes are rewritten per byte written.`;
  const used = history === undefined || history.used.core_s === 0 ? '' : `, for ${usedText(history.used)}`;
  return [
    grown('rewrites') === 0
      ? 'No rewrite yet.'
      : `${plural(grown('files_replaced'), 'file')} became ${count(grown('files_written'))}.`,
    `${span}: ${plural(grown('commits'), 'commit')} followed, ${plural(grown('rewrites'), 'rewrite')}, ${bytes(grown('bytes_replaced'))} read${used}.${cost}`,
  ];
}
