// Shades of the heat map: seven steps from optimal to worst, so that neighbors differ visibly.
export const SHADES = [0, 1, 2, 3, 4, 5, 6] as const;

export function shadeOf(shortfall: number): number {
  return Math.min(SHADES.length - 1, Math.max(0, Math.floor(shortfall * SHADES.length)));
}
