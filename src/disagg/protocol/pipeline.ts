import { checkU32 } from "../checks.js";
import { blank, type MessageBytes, open } from "./bytes.js";

// Two messages of the original's other mode, where a model's layers stand on several workers. The router sends neither.

const LAYER_ASSIGNMENT_BYTES = 10;
const GEN_REQUEST_BYTES = 12;

/** Tells a worker which layers it holds. Tag 1. */
export interface LayerAssignment {
  readonly startLayer: number;
  readonly endLayer: number;
  readonly hasEmbedding: boolean;
  readonly hasLmHead: boolean;
}

/** Announces a prompt to the first stage. Tag 20. */
export interface GenRequestHeader {
  readonly seqLen: number;
  readonly maxTokens: number;
  readonly position: number;
}

/** Encodes startLayer u32 @0, endLayer u32 @4, hasEmbedding @8 and hasLmHead @9, a byte each. */
export function encodeLayerAssignment(message: LayerAssignment): MessageBytes {
  const { bytes, view } = blank(LAYER_ASSIGNMENT_BYTES);
  view.setUint32(0, checkU32(message.startLayer, "startLayer"), true);
  view.setUint32(4, checkU32(message.endLayer, "endLayer"), true);
  view.setUint8(8, message.hasEmbedding ? 1 : 0);
  view.setUint8(9, message.hasLmHead ? 1 : 0);
  return bytes;
}

/** Decodes a LayerAssignment; any byte but 0 is true. */
export function decodeLayerAssignment(bytes: Uint8Array): LayerAssignment {
  const view = open(bytes, "LayerAssignment", LAYER_ASSIGNMENT_BYTES);
  return {
    startLayer: view.getUint32(0, true),
    endLayer: view.getUint32(4, true),
    hasEmbedding: view.getUint8(8) !== 0,
    hasLmHead: view.getUint8(9) !== 0,
  };
}

/** Encodes seqLen u32 @0, maxTokens u32 @4, position u32 @8. */
export function encodeGenRequestHeader(message: GenRequestHeader): MessageBytes {
  const { bytes, view } = blank(GEN_REQUEST_BYTES);
  view.setUint32(0, checkU32(message.seqLen, "seqLen"), true);
  view.setUint32(4, checkU32(message.maxTokens, "maxTokens"), true);
  view.setUint32(8, checkU32(message.position, "position"), true);
  return bytes;
}

export function decodeGenRequestHeader(bytes: Uint8Array): GenRequestHeader {
  const view = open(bytes, "GenRequestHeader", GEN_REQUEST_BYTES);
  return {
    seqLen: view.getUint32(0, true),
    maxTokens: view.getUint32(4, true),
    position: view.getUint32(8, true),
  };
}
