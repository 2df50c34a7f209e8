// A state as a colored word; the color repeats the word and is never the only sign.
const TONES: Readonly<Record<string, string>> = {
  running: 'busy',
  leased: 'busy',
  working: 'busy',
  waiting: 'plain',
  queued: 'plain',
  idle: 'good',
  compact: 'good',
  invalid_properties: 'bad',
  done: 'good',
  enqueue: 'busy',
  defer: 'warn',
  skip: 'plain',
  outside_window: 'warn',
  over_budget: 'warn',
  backing_off: 'bad',
  delayed: 'warn',
  draining: 'warn',
  drained: 'plain',
  yield: 'plain',
  failing: 'bad',
  quarantined: 'bad',
  refused: 'bad',
  fail: 'bad',
  crashed: 'bad',
  died: 'bad',
  expired: 'bad',
  disabled: 'plain',
  paused: 'warn',
  oversold: 'warn',
  unread: 'plain',
};

/** States that people read in other words. */
const WORDS: Readonly<Record<string, string>> = {
  waiting: 'waiting for an actor',
  backing_off: 'retrying',
  outside_window: 'outside its window',
  over_budget: 'over budget',
};

export function Badge({ state, title }: { state: string; title?: string }) {
  return (
    <span class={`badge ${TONES[state] ?? 'plain'}`} title={title}>
      {WORDS[state] ?? state.replaceAll('_', ' ')}
    </span>
  );
}
