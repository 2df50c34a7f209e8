// Points of a chart that grows while one watches: newer points are added, the oldest leave.
import type { LayoutPointView } from '../../api/schema';

/** Returns ascending points, at most `most`; a version that is read again replaces the earlier reading. */
export function mergedPoints(
  known: readonly LayoutPointView[],
  found: readonly LayoutPointView[],
  most: number,
): readonly LayoutPointView[] {
  const first = found[0]?.version ?? Infinity;
  return [...known.filter(one => one.version < first), ...found].slice(-most);
}

/** Seconds of the points: clocks of writers differ, and a chart needs times that never go back. */
export function ascendingTimes(points: readonly Pick<LayoutPointView, 'at'>[]): number[] {
  let latest = 0;
  return points.map(one => (latest = Math.max(latest, Date.parse(one.at ?? '') / 1000 || 0)));
}
