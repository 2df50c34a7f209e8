// Numbers in human units; the exact value is shown on hover by the parts that use these.

const GROUPED = new Intl.NumberFormat('en-US');
const ONE_DIGIT = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 });
const TWO_DIGITS = new Intl.NumberFormat('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const SIZES = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const;
const SCALES = ['', 'k', 'M', 'B'] as const;

/** 1,536 → `1.5 KiB`. */
export function bytes(value: number): string {
  let scaled = Math.abs(value);
  let unit = 0;
  while (scaled >= 1024 && unit < SIZES.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  const digits = scaled < 10 && unit > 0 ? ONE_DIGIT.format(scaled) : GROUPED.format(Math.round(scaled));
  return `${value < 0 ? '−' : ''}${digits} ${SIZES[unit] ?? 'B'}`;
}

/** 12,345 → `12.3k`; below ten thousand every digit before the point is shown, from a hundred on none behind it. */
export function count(value: number): string {
  if (Math.abs(value) < 10_000) return GROUPED.format(Math.abs(value) < 100 ? value : Math.round(value));
  let scaled = value;
  let unit = 0;
  while (Math.abs(scaled) >= 1000 && unit < SCALES.length - 1) {
    scaled /= 1000;
    unit += 1;
  }
  return `${Math.abs(scaled) < 100 ? ONE_DIGIT.format(scaled) : GROUPED.format(Math.round(scaled))}${SCALES[unit] ?? ''}`;
}

export function exact(value: number): string {
  return GROUPED.format(value);
}

export function ratio(value: number): string {
  return TWO_DIGITS.format(value);
}

export function percent(value: number): string {
  return value > 0 && value < 0.01 ? '<1%' : `${Math.round(100 * value)}%`;
}

/** `60 files, 4 would do`, or that nothing can be gained; in a list, beside the number of files, without them. */
export function compactness(files: number, needed: number, long = true): string {
  if (files === needed) return long ? 'as compact as it can be' : 'compact';
  return `${long ? `${plural(files, 'file')}, ` : ''}${count(needed)} would do`;
}

/** `1 file`, `2 files`. */
export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}
