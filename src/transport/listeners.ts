/** Functions that hear of something. */
export class Listeners<Told extends readonly unknown[]> {
  readonly #all = new Set<{ readonly hear: (...told: Told) => void }>();

  /** Adds a listener, and returns what takes it off. The same function added twice hears twice. */
  add(hear: (...told: Told) => void): () => void {
    const listener = { hear };
    this.#all.add(listener);
    return () => {
      this.#all.delete(listener);
    };
  }

  /** Tells every listener. What one throws is reported as uncaught, and hinders neither the others nor the caller. */
  tell(...told: Told): void {
    for (const { hear } of [...this.#all]) {
      try {
        hear(...told);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
