/** The value below which a fraction of the samples lies, interpolated between neighbours. */
export function quantile(samples: readonly number[], fraction: number): number {
  if (samples.length === 0) throw new RangeError("Expected at least 1 sample, got 0.");
  const sorted = [...samples].sort((a, b) => a - b);
  const place = fraction * (sorted.length - 1);
  const below = Math.floor(place);
  const low = sorted[below] as number;
  const high = sorted[Math.min(below + 1, sorted.length - 1)] as number;
  return low + (high - low) * (place - below);
}

export function median(samples: readonly number[]): number {
  return quantile(samples, 0.5);
}
