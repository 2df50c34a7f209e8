// Requests the token, once per tab; requests that were refused wait behind it and are repeated with the new one.
import { useState } from 'preact/hooks';
import { isTokenRefused, isTokenRequired, setToken } from '../api/session';
import { Dialog } from './dialog';

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
        <p>
          {isTokenRefused.value
            ? 'The token is no longer accepted. Nothing that you typed is lost: the request continues with a new one.'
            : 'This decider requires a bearer token. It is kept for this tab only.'}
        </p>
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
