import type { Clock } from "../../clock.js";
import { TransportError } from "../../errors.js";
import type { Limits } from "../limits.js";
import {
  decodeFrame,
  encodeFrame,
  type Frame,
  type FrameBytes,
  frameError,
  type PeerId,
  patchEpoch,
} from "./frames.js";
import { Outstanding } from "./outstanding.js";
import type { Pipe } from "./pipe.js";

/** What a guest needs of its hub. */
export interface Host {
  /** Connects the guest under a rank, or says why not. */
  enter(rank: number): string | null;
  find(rank: number): Guest | undefined;
  /** Hears once that the guest has gone. */
  leave(reason: string): void;
  misdeed(error: Error): void;
}

type Of<K extends Frame["kind"]> = Extract<Frame, { kind: K }>;

/** A connection, seen from the hub. */
export class Guest {
  /** `null` until it has said who it is. */
  rank: number | null = null;
  epoch = 0;
  readonly #pipe: Pipe;
  readonly #limits: Limits;
  readonly #host: Host;
  /** What is under way from here, by the destinations that are connected. */
  readonly #underWay = new Map<number, Outstanding>();
  #isGone = false;
  #stopWaiting: () => void = () => undefined;

  constructor(pipe: Pipe, limits: Limits, host: Host) {
    this.#pipe = pipe;
    this.#limits = limits;
    this.#host = host;
  }

  listen(): void {
    this.#pipe.listen({
      onFrame: (frame) => this.#onFrame(frame),
      onClose: (reason, cause) => {
        if (cause instanceof TransportError && !this.#isGone) this.#host.misdeed(cause);
        this.#go(reason);
      },
    });
  }

  /** Dismisses the guest if it says nothing for too long. */
  waitForHello(clock: Clock | undefined, timeoutMs: number): void {
    if (clock === undefined) return;
    const late = () => this.#refuse(`nothing was said for ${timeoutMs} ms`);
    const timer = clock.setTimeout(late, timeoutMs);
    this.#stopWaiting = () => clock.clearTimeout(timer);
  }

  /** Tells the guest that it is connected, and with whom. */
  welcome(own: PeerId, others: readonly Guest[]): void {
    this.rank = own.rank;
    this.epoch = own.epoch;
    const { windowEnvelopes, windowBytes, maxEnvelopeBytes } = this.#limits;
    const peers = [...others.map(({ rank, epoch }) => ({ rank: rank ?? 0, epoch })), own];
    this.tell(encodeFrame({ kind: "welcome", windowEnvelopes, windowBytes, maxEnvelopeBytes, peers }));
  }

  tell(frame: FrameBytes): void {
    this.#pipe.post(frame);
  }

  /** Ends the connection, and says why. */
  dismiss(reason: string): Promise<void> {
    this.tell(encodeFrame({ kind: "bye", reason }));
    this.#go(reason);
    return this.#pipe.close();
  }

  /** Tells the guest that another has gone, whose way starts anew if it comes back. */
  bidFarewell(to: PeerId, reason: string): void {
    this.#underWay.delete(to.rank);
    this.tell(encodeFrame({ kind: "lost", ...to, reason }));
  }

  /** Takes back what another has acknowledged of what this one sent to it. */
  acknowledge(by: PeerId, envelopes: number, bytes: number): void {
    const outstanding = this.#underWay.get(by.rank);
    if (outstanding === undefined) throw frameError(`Expected envelopes under way to rank ${by.rank}, got none`);
    outstanding.remove(envelopes, bytes);
    this.tell(encodeFrame({ kind: "taken", rank: by.rank, epoch: by.epoch, envelopes, bytes }));
  }

  #onFrame(bytes: FrameBytes): void {
    if (this.#isGone) return;
    try {
      const frame = decodeFrame(bytes);
      if (this.rank === null) this.#greet(frame);
      else this.#obey(frame, { rank: this.rank, epoch: this.epoch }, bytes);
    } catch (error) {
      const problem = error as Error; // nothing but typed errors is thrown there
      this.#host.misdeed(problem);
      this.#refuse(problem.message.replace(/\.$/, ""));
    }
  }

  #greet(frame: Frame): void {
    if (frame.kind !== "hello") throw frameError(`Expected a hello frame, got a ${frame.kind} frame`);
    this.#stopWaiting();
    const reason = this.#host.enter(frame.rank);
    if (reason !== null) this.#refuse(reason);
  }

  #obey(frame: Frame, own: PeerId, bytes: FrameBytes): void {
    switch (frame.kind) {
      case "data":
        this.#passOn(frame, own, bytes);
        break;
      case "taken":
        this.#find(frame)?.acknowledge(own, frame.envelopes, frame.bytes);
        break;
      case "bye":
        this.#go(frame.reason);
        void this.#pipe.close();
        break;
      default:
        throw frameError(`Expected no ${frame.kind} frame after the greeting, got one`);
    }
  }

  /** Passes an envelope on as it came, with the epoch of its source. If its destination has gone, it goes nowhere. */
  #passOn({ epoch, envelope }: Of<"data">, own: PeerId, bytes: FrameBytes): void {
    const { source, destination } = envelope;
    if (source !== own.rank) throw frameError(`Expected an envelope of rank ${own.rank}, got one of ${source}`);
    const guest = this.#find({ rank: destination, epoch });
    if (guest === undefined) return;
    this.#outstandingTo(destination).add(envelope.bytes.length);
    patchEpoch(bytes, own.epoch);
    guest.tell(bytes);
  }

  #outstandingTo(rank: number): Outstanding {
    let outstanding = this.#underWay.get(rank);
    if (outstanding === undefined) {
      outstanding = new Outstanding(this.#limits);
      this.#underWay.set(rank, outstanding);
    }
    return outstanding;
  }

  #find({ rank, epoch }: PeerId): Guest | undefined {
    const guest = this.#host.find(rank);
    return guest?.epoch === epoch ? guest : undefined;
  }

  #refuse(reason: string): void {
    this.tell(encodeFrame({ kind: this.rank === null ? "refused" : "bye", reason }));
    this.#go(reason);
    void this.#pipe.close();
  }

  #go(reason: string): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#stopWaiting();
    this.#underWay.clear();
    this.#host.leave(reason);
  }
}
