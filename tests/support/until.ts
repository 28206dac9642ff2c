const PATIENCE_MS = 10_000;

/** Waits until something holds, step by step, and says what it was if it does not come. */
export async function until(holds: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`Waited ${PATIENCE_MS} ms until ${what}.`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
