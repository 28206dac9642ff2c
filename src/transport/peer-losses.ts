export type PeerLost = (rank: number, reason: Error) => void;

/** The listeners that hear of lost peers. */
export class PeerLosses {
  readonly #listeners = new Set<{ readonly hear: PeerLost }>();

  /** Adds a listener, and returns what takes it off. The same function added twice hears twice. */
  add(hear: PeerLost): () => void {
    const listener = { hear };
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Tells every listener. What one throws is reported as uncaught, and hinders neither the others nor the transport. */
  tell(rank: number, reason: Error): void {
    for (const { hear } of [...this.#listeners]) {
      try {
        hear(rank, reason);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
