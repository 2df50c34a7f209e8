// Values as text: human units, with the exact value on hover.
import { signal } from '@preact/signals';
import { bytes, count, exact, percent } from '../format/numbers';
import { absolute, relative } from '../format/times';

/** The present, moved once a second while the page is visible, so that relative times stay true. */
export const now = signal(Date.now());

export function startClock(): void {
  setInterval(() => {
    if (document.visibilityState === 'visible') now.value = Date.now();
  }, 1_000);
}

export function Bytes({ value }: { value: number | null | undefined }) {
  if (value === null || value === undefined) return <Missing />;
  return (
    <span class="number" title={`${exact(value)} bytes`}>
      {bytes(value)}
    </span>
  );
}

export function Count({ value }: { value: number | null | undefined }) {
  if (value === null || value === undefined) return <Missing />;
  return (
    <span class="number" title={exact(value)}>
      {count(value)}
    </span>
  );
}

export function Ago({ at }: { at: string | null | undefined }) {
  if (at === null || at === undefined) return <Missing />;
  const time = new Date(at);
  return (
    <time class="number" dateTime={at} title={absolute(time)}>
      {relative(time, now.value)}
    </time>
  );
}

export function Missing() {
  return (
    <span class="missing" title="not known">
      –
    </span>
  );
}

/** Entropy as a bar: the root mean squared shortfall as a share of the target; empty is optimal. */
export function Entropy({ value }: { value: number | null | undefined }) {
  if (value === null || value === undefined) return <Missing />;
  const level = value < 0.25 ? 'good' : value < 0.7 ? 'fair' : 'poor';
  return (
    <span class="entropy" title={`root mean squared shortfall: ${(100 * value).toFixed(2)}% of the target`}>
      <Meter value={value} tone={level} />
      <span class="number">{percent(value)}</span>
    </span>
  );
}

export function Meter({ value, tone, label }: { value: number; tone: string; label?: string }) {
  const share = Math.max(0, Math.min(1, value));
  return (
    <span class={`meter ${tone}`} aria-hidden={label === undefined ? 'true' : undefined} title={label}>
      <span style={{ width: `${100 * share}%` }} />
    </span>
  );
}
