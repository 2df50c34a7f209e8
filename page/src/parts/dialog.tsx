// A modal dialog: the browser's own element, which keeps the focus inside and closes on Escape; the focus returns to
// where it was.
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';

export function Dialog(props: { title: string; onClose: () => void; wide?: boolean; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  const title = useId();
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={props.wide === true ? 'wide' : ''}
      aria-labelledby={title}
      onCancel={event => {
        event.preventDefault();
        props.onClose();
      }}
      onClick={event => {
        if (event.target === element.current) props.onClose();
      }}
    >
      <div class="dialog-body">
        <div class="dialog-head">
          <h2 id={title}>{props.title}</h2>
          <button type="button" class="plain" aria-label="Close" onClick={props.onClose}>
            ✕
          </button>
        </div>
        {props.children}
      </div>
    </dialog>
  );
}
