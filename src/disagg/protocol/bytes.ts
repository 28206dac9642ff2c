import { ArgumentTypeError, ProtocolError } from "../../errors.js";

/** The bytes of a message, ready to be handed to a transport. */
export type MessageBytes = Uint8Array<ArrayBuffer>;

/** Makes the bytes of a message of a fixed size, all zero, and the view to write its fields with. */
export function blank(size: number): { bytes: MessageBytes; view: DataView } {
  const bytes = new Uint8Array(size);
  return { bytes, view: new DataView(bytes.buffer) };
}

/** Opens a message of a fixed size for reading. Every bit pattern of that size is a message. */
export function open(bytes: Uint8Array, message: string, size: number): DataView {
  checkBytes(bytes, message);
  if (bytes.length !== size) {
    throw new ProtocolError(`Expected a ${message} of ${size} bytes, got ${bytes.length}.`);
  }
  return viewOf(bytes);
}

export function checkBytes(bytes: unknown, message: string): asserts bytes is Uint8Array {
  if (bytes instanceof Uint8Array) return;
  throw new ArgumentTypeError(
    `Expected the bytes of a ${message} as a Uint8Array, got a value of type ${typeof bytes}.`,
  );
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
