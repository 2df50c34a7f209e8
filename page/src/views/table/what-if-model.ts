// What a replay assumes where a person sets nothing else: the defaults of the API, which its types require to be named.
export const COST_MODEL = { open_s: 0.05, write_s_per_gib: 20, tail_hours: 24 } as const;

export const QUERIES_PER_HOUR = 10;

/** Commits that are replayed at most. */
export const COMMITS = 1_000;
