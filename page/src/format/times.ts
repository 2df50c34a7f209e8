// Times relative to now, and absolute ones for hovering; durations in the two largest fitting units.

const ABSOLUTE = new Intl.DateTimeFormat('en-CA', {
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
  timeZoneName: 'short',
});
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });

const UNITS: readonly (readonly [string, number])[] = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
];

/** 3,725 s → `1 h 2 min`; below ten seconds one decimal. */
export function duration(seconds: number): string {
  if (seconds < 1) return `${Math.max(0, Math.round(1000 * seconds))} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  let left = Math.round(seconds);
  const parts: string[] = [];
  for (const [unit, size] of UNITS) {
    const many = Math.floor(left / size);
    left -= many * size;
    if (many > 0) parts.push(`${many} ${unit}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.join(' ');
}

/** `12 s ago`, `in 3 min`, with one unit. */
export function relative(at: Date, now: number): string {
  const seconds = (now - at.getTime()) / 1000;
  if (Math.abs(seconds) < 1) return 'now';
  const size = Math.abs(seconds);
  const [unit, scale] = UNITS.find(([, one]) => size >= one) ?? ['s', 1];
  const text = `${Math.floor(size / scale)} ${unit}`;
  return seconds > 0 ? `${text} ago` : `in ${text}`;
}

export function absolute(at: Date): string {
  return ABSOLUTE.format(at).replace(',', '');
}

export function clock(at: Date): string {
  return CLOCK.format(at);
}

const DAY_S = 86_400;

/** A time on an axis whose ticks are `stepS` seconds apart. */
export function tick(atS: number, stepS: number): string {
  const at = new Date(atS * 1000);
  if (stepS >= DAY_S) return DAY.format(at);
  return stepS >= 60 ? clock(at).slice(0, 5) : clock(at);
}
