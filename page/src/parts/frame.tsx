// Frames of a view: its head, cards, figures, and what is shown while there is no data.
import type { ComponentChildren } from 'preact';
import type { Resource } from '../api/use-resource';

export function Head(props: { title: string; sub?: ComponentChildren; children?: ComponentChildren }) {
  return (
    <header class="head">
      <div class="head-text">
        <h1>{props.title}</h1>
        {props.sub !== undefined && <p class="sub">{props.sub}</p>}
      </div>
      {props.children !== undefined && <div class="actions">{props.children}</div>}
    </header>
  );
}

export function Card(props: { title: string; note?: ComponentChildren; class?: string; children: ComponentChildren }) {
  return (
    <section class={`card ${props.class ?? ''}`} aria-label={props.title}>
      <div class="card-head">
        <h2>{props.title}</h2>
        {props.note !== undefined && <span class="note">{props.note}</span>}
      </div>
      {props.children}
    </section>
  );
}

export function Figure(props: { label: string; note?: ComponentChildren; children: ComponentChildren }) {
  return (
    <div class="figure">
      <dt>{props.label}</dt>
      <dd>
        <span class="figure-value">{props.children}</span>
        {props.note !== undefined && <span class="note">{props.note}</span>}
      </dd>
    </div>
  );
}

export function Figures({ children }: { children: ComponentChildren }) {
  return <dl class="figures">{children}</dl>;
}

/** A sentence where a list has nothing to show. */
export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

/** Shows a resource: its data, the problem that kept it from being read, or that it is being read. */
export function Loaded<T>(props: { of: Resource<T>; children: (data: T) => ComponentChildren }) {
  const { data, problem } = props.of;
  return (
    <>
      {problem !== '' && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {data === undefined ? problem === '' && <p class="loading">Loading…</p> : props.children(data)}
    </>
  );
}
