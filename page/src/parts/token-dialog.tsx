// Requests the token, once per tab; requests that were refused wait behind it and are repeated with the new one.
import { useState } from 'preact/hooks';
import { caller, isTokenRefused, isTokenRequired, setToken } from '../api/session';
import { Dialog } from './dialog';

function reason(): string {
  if (!isTokenRefused.value) return 'This decider requires a bearer token. It is kept for this tab only.';
  if (caller.value === null)
    return 'This token is not accepted: check that it is complete, and meant for this decider.';
  return 'The token is no longer accepted. Nothing that you typed is lost: the request continues with a new one.';
}

export function TokenDialog() {
  const [text, setText] = useState('');
  if (!isTokenRequired.value) return null;
  return (
    <Dialog title="Token" onClose={() => undefined}>
      <form
        onSubmit={event => {
          event.preventDefault();
          setToken(text.trim());
          setText('');
        }}
      >
        <p>{reason()}</p>
        <label class="field">
          <span>Bearer token</span>
          <input
            type="password"
            autocomplete="off"
            required
            value={text}
            onInput={event => setText(event.currentTarget.value)}
          />
        </label>
        <div class="dialog-actions">
          <button type="submit" class="primary">
            Use this token
          </button>
        </div>
      </form>
    </Dialog>
  );
}
