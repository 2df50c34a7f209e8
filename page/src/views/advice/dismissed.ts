// Changes that a person dismissed, kept for this tab alone: the next person may judge otherwise.
import { signal } from '@preact/signals';

const KEY = 'lakewright.dismissed';

function stored(): ReadonlySet<string> {
  try {
    const found: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? '[]');
    return new Set(Array.isArray(found) ? found.filter(one => typeof one === 'string') : []);
  } catch {
    return new Set();
  }
}

export const dismissed = signal(stored());

export function dismiss(identity: string): void {
  keep(new Set([...dismissed.value, identity]));
}

export function restoreAll(): void {
  keep(new Set());
}

function keep(identities: ReadonlySet<string>): void {
  dismissed.value = identities;
  sessionStorage.setItem(KEY, JSON.stringify([...identities]));
}
