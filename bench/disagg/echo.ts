import { startThread } from "./crew.js";

/** A bare thread, and what 16 bytes need to it and back, or from it. */
export interface Echo {
  /** Sends messages, each once the one before has come back. */
  pingPong(messages: number): Promise<void>;
  /** Lets as many messages come as fast as they will. */
  stream(messages: number): Promise<void>;
  close(): Promise<unknown>;
}

export function openEcho(): Echo {
  const thread = startThread("echo");
  let onMessage = () => {};
  thread.on("message", () => onMessage());
  const wait = (messages: number, each: () => void) =>
    new Promise<void>((resolve) => {
      let left = messages;
      onMessage = () => {
        left--;
        if (left > 0) each();
        else resolve();
      };
    });
  return {
    pingPong: (messages) => {
      const ping = () => thread.postMessage(new Uint8Array(16));
      const done = wait(messages, ping);
      ping();
      return done;
    },
    stream: (messages) => {
      const done = wait(messages, () => {});
      thread.postMessage(messages);
      return done;
    },
    close: () => thread.terminate(),
  };
}
