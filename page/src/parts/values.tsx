// Values as text: human units, with the exact value on hover.
import { signal } from '@preact/signals';
import { bytes, compactness, count, exact, percent } from '../format/numbers';
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

/** A sentence of the decider, whose names between backticks are code. */
export function Sentence({ text }: { text: string }) {
  return <>{text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>;
}

export function Missing() {
  return (
    <span class="missing" title="not known">
      –
    </span>
  );
}

/** What merging can still gain: nothing is good, however small the files are; the bar shows how much. */
export function Compactness(props: { files: number | null; needed: number | null; excess: number | null }) {
  const { files, needed, excess } = props;
  if (files === null || needed === null || excess === null) return <Missing />;
  const tone = excess < TOLERATED ? 'good' : excess < 0.5 ? 'fair' : 'poor';
  return (
    <span
      class="metered"
      title={`${compactness(files, needed)}; excess of file sizes: ${percent(excess)} of the target`}
    >
      <Meter value={excess} tone={tone} />
      <span class="number">{compactness(files, needed, false)}</span>
    </span>
  );
}

/** Excess below which a table counts as compact: the default tolerance. */
const TOLERATED = 0.15;

export function Meter({ value, tone, label }: { value: number; tone: string; label?: string }) {
  const share = Math.max(0, Math.min(1, value));
  return (
    <span class={`meter ${tone}`} aria-hidden={label === undefined ? 'true' : undefined} title={label}>
      {share > 0 && <span style={{ width: `${100 * share}%` }} />}
    </span>
  );
}
