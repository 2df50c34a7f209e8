// Calls of the REST API with the types of its OpenAPI document; a changed field breaks the build.
import createClient from 'openapi-fetch';
import type { paths, ProblemDocument } from './schema';
import { otherToken, token } from './session';

/** Where the decider is: the folder of this page, so that a proxy may serve it below a prefix. */
export const BASE = new URL('.', location.href.replace(/#.*/, '')).href.replace(/\/$/, '');

/** A request that failed, with the sentence that the API gives for it. */
export class ApiProblem extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly field: string,
  ) {
    super(message);
  }
}

/** Sends a request with the tab's token; after a 401 it waits for another token and repeats the request. */
export async function fetchWithToken(request: Request): Promise<Response> {
  for (;;) {
    const used = token.value;
    const attempt = request.clone();
    if (used !== '') attempt.headers.set('authorization', `Bearer ${used}`);
    const response = await fetch(attempt);
    if (response.status !== 401) return response;
    await otherToken(used);
  }
}

export const api = createClient<paths>({ baseUrl: BASE, fetch: fetchWithToken });

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Returns the body of a successful answer; throws ApiProblem for any other. */
export async function read<T>(call: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await call;
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause;
    throw new ApiProblem('The decider does not answer.', 0, '');
  }
  if (answer.response.ok) return answer.data as T;
  const problem = answer.error as Partial<ProblemDocument> | undefined;
  throw new ApiProblem(
    problem?.detail ?? `The decider answered with ${answer.response.status}.`,
    answer.response.status,
    problem?.field ?? '',
  );
}

/** The sentence for a failure of any kind. */
export function sentence(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure);
}
