// Rates from counters: what was done between two samples, per hour.
import type { HistoryPoint } from '../../api/schema';

/** Growth of a counter per hour between each point and the one before; null at the first, and where it began again. */
export function perHour(
  points: readonly Pick<HistoryPoint, 'at' | 'bytes_added' | 'bytes_replaced'>[],
  name: 'bytes_added' | 'bytes_replaced',
): (number | null)[] {
  return points.map((one, index) => {
    const before = points[index - 1];
    if (before === undefined) return null;
    const hours = (Date.parse(one.at ?? '') - Date.parse(before.at ?? '')) / 3_600_000;
    const grown = one[name] - before[name];
    return hours > 0 && grown >= 0 ? grown / hours : null;
  });
}
