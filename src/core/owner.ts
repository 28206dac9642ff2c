import { DisposedError, type KvrouteError } from "../errors.js";
import type { CoreInstance } from "./instance.js";

/** Holds the core of one object until the object is disposed of or the core panics. */
export class CoreOwner {
  readonly #what: string;
  readonly #letGo: () => void;
  #core: CoreInstance | null;
  /** Why there is no core any more, once there is none. */
  #end: KvrouteError | null = null;

  /** `what` names the object in messages; `letGo` lets go of what is of no use without the core. */
  constructor(core: CoreInstance, what: string, letGo: () => void = () => {}) {
    this.#core = core;
    this.#what = what;
    this.#letGo = letGo;
    core.onTrap = (trap) => this.stop(trap);
  }

  /** Gives the core, or throws why there is none. */
  open(): CoreInstance {
    if (this.#core === null) throw this.#end as KvrouteError;
    return this.#core;
  }

  /** Runs a verb of the core. */
  run<Result>(verb: () => Result): Result {
    try {
      return verb();
    } catch (trap) {
      throw this.stop(trap);
    }
  }

  /**
   * Gives the core up for a trap, which leaves it in an unknown state, and returns the error for it: every later call gets
   * the same.
   */
  stop(trap: unknown): KvrouteError {
    if (this.#core !== null) this.#close(this.#core.panic(trap));
    return this.#end as KvrouteError;
  }

  /** Lets go of the core for good. */
  dispose(): void {
    if (this.#core !== null) this.#close(new DisposedError(this.#what));
  }

  #close(end: KvrouteError): void {
    this.#end = end;
    this.#core = null;
    this.#letGo();
  }
}
