// Rates from counters: what was done between two samples, per hour.
import type { HistoryPoint } from '../../api/schema';

type Counter = 'events_received' | 'commits' | 'bytes_added' | 'bytes_replaced' | 'core_s';

/** Growth of a counter per hour between each point and the one before; null at the first, and where it began again. */
export function perHour<Name extends Counter>(
  points: readonly Pick<HistoryPoint, 'at' | Name>[],
  name: Name,
): (number | null)[] {
  return points.map((one, index) => {
    const before = points[index - 1];
    if (before === undefined) return null;
    const hours = (Date.parse(one.at ?? '') - Date.parse(before.at ?? '')) / 3_600_000;
    const grown = one[name] - before[name];
    return hours > 0 && grown >= 0 ? Math.round((10 * grown) / hours) / 10 : null;
  });
}
