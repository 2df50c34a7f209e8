// The text of an error as it was reported, of any length: it scrolls by mouse and keyboard.
export function ErrorText({ text }: { text: string }) {
  return (
    <p class="error-text" tabIndex={0} role="region" aria-label="Error">
      {text}
    </p>
  );
}
