/** A signal that counts who listens to it. */
export class CountedSignal {
  readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  listeners = 0;

  constructor() {
    const { signal } = this;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    const live = new Set<unknown>();
    signal.addEventListener = (type: string, listener: EventListenerOrEventListenerObject) => {
      live.add(listener);
      this.listeners = live.size;
      add(type, listener);
    };
    signal.removeEventListener = (type: string, listener: EventListenerOrEventListenerObject) => {
      live.delete(listener);
      this.listeners = live.size;
      remove(type, listener);
    };
  }
}
