// Curves that were sampled at different times, on one axis: each holds its last value until its next sample.

interface AlignedCurves {
  readonly times: readonly number[];
  /** One list per curve, as long as `times`; null before its first sample. */
  readonly values: readonly (readonly (number | null)[])[];
}

/** Each sample begins with its time and its value. */
export function alignedCurves(curves: readonly (readonly (readonly number[])[])[]): AlignedCurves {
  const times = [...new Set(curves.flatMap(curve => curve.map(timeOf)))].sort((a, b) => a - b);
  const values = curves.map(curve => {
    let next = 0;
    let held: number | null = null;
    return times.map(at => {
      for (let sample = curve[next]; sample !== undefined && timeOf(sample) <= at; sample = curve[next]) {
        held = sample[1] ?? null;
        next += 1;
      }
      return held;
    });
  });
  return { times, values };
}

function timeOf(sample: readonly number[]): number {
  return sample[0] ?? 0;
}
