// A button that calls the API: it waits for the answer, shows it, and never fails in silence.
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { sentence } from '../api/client';
import { Dialog } from './dialog';

interface Notice {
  readonly text: string;
  readonly isProblem: boolean;
}

const notice = signal<Notice | null>(null);
const SHOWN_MS = 8_000;
let hiding: ReturnType<typeof setTimeout> | undefined;

export function notify(text: string, isProblem = false): void {
  notice.value = { text, isProblem };
  clearTimeout(hiding);
  hiding = setTimeout(() => (notice.value = null), SHOWN_MS);
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notice.value !== null && (
        <div class={`notice ${notice.value.isProblem ? 'bad' : ''}`}>
          <span>{notice.value.text}</span>
          <button type="button" class="plain" aria-label="Dismiss" onClick={() => (notice.value = null)}>
            ✕
          </button>
        </div>
      )}
    </div>
  );
}

/** Runs an action once at a time; returns whether it runs, and the function that starts it. */
export function useAction(run: () => Promise<string>, done?: () => void): [boolean, () => void] {
  const [isRunning, setRunning] = useState(false);
  const start = () => {
    if (isRunning) return;
    setRunning(true);
    run()
      .then(text => {
        notify(text);
        done?.();
      })
      .catch((failure: unknown) => notify(sentence(failure), true))
      .finally(() => setRunning(false));
  };
  return [isRunning, start];
}

interface ActionProps {
  run: () => Promise<string>;
  done?: (() => void) | undefined;
  /** A question that has to be confirmed first. */
  confirm?: string;
  label?: string;
  kind?: 'primary' | 'danger' | 'small';
  children: ComponentChildren;
}

export function Action(props: ActionProps) {
  const [isRunning, start] = useAction(props.run, props.done);
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <button
        type="button"
        class={props.kind ?? ''}
        disabled={isRunning}
        aria-label={props.label}
        onClick={() => (props.confirm === undefined ? start() : setAsking(true))}
      >
        {props.children}
      </button>
      {isAsking && (
        <Dialog title="Please confirm" onClose={() => setAsking(false)}>
          <p>{props.confirm}</p>
          <div class="dialog-actions">
            <button type="button" onClick={() => setAsking(false)}>
              Cancel
            </button>
            <button
              type="button"
              class={props.kind === 'danger' ? 'danger' : 'primary'}
              onClick={() => {
                setAsking(false);
                start();
              }}
            >
              {props.children}
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}
