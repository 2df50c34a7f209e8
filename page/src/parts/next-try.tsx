// When a job that failed is tried again; without an actor that takes jobs, its time may be over.
import { Ago, now } from './values';

export function NextTry({ at }: { at: string | null }) {
  if (at === null) return null;
  if (Date.parse(at) < now.value) return <>, next try when an actor is free</>;
  return (
    <>
      , next try <Ago at={at} />
    </>
  );
}
