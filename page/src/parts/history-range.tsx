// How far back a history goes.
const RANGES = [
  [24, '24 hours'],
  [168, '7 days'],
  [720, '30 days'],
] as const;

export function HistoryRange({ hours, choose }: { hours: number; choose: (hours: number) => void }) {
  return (
    <select aria-label="Range" value={hours} onChange={event => choose(Number(event.currentTarget.value))}>
      {RANGES.map(([value, title]) => (
        <option key={value} value={value}>
          {title}
        </option>
      ))}
    </select>
  );
}
