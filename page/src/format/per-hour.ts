// Rates from counters: what was done between two samples, per hour.

/** Growth of a counter per hour between each point and the one before; null at the first, and where it began again. */
export function perHour<Name extends string>(
  points: readonly ({ readonly at: string | null } & Readonly<Record<Name, number>>)[],
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
