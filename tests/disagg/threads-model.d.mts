export declare function prefill(tokens: BigInt64Array): Uint8Array<ArrayBuffer>;
export declare function decodeStep(kv: Uint8Array, lastToken: bigint, position: number): bigint;
export declare function answerTo(tokens: BigInt64Array, maxNewTokens: number): bigint[];
export declare const HELD: number;
export declare function isHeld(kv: Uint8Array, position: number): boolean;
