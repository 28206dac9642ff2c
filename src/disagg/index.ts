export type { Clock } from "../clock.js";
export {
  ArgumentRangeError,
  ArgumentTypeError,
  DisaggError,
  type DisaggErrorCode,
  KvrouteError,
  PlacementError,
  type PlacementErrorCode,
  ProtocolError,
  TransportError,
  type TransportErrorCode,
} from "../errors.js";
export { systemClock } from "../system.js";
export { TransportHub, type TransportHubOptions } from "../transport/hub.js";
export type { TransportLimits } from "../transport/limits.js";
export { MemoryNetwork, type MemoryNetworkOptions } from "../transport/memory.js";
export { connectMessagePort, messagePortPipe, type PortLike } from "../transport/message-port.js";
export type { Envelope, ReceiveOptions, SendOptions, Transport } from "../transport/types.js";
export {
  connectWebSocket,
  type WebSocketLike,
  type WebSocketOptions,
  webSocketPipe,
} from "../transport/websocket.js";
export type { ConnectOptions } from "../transport/wire/connect.js";
export type { ConnectedTransport } from "../transport/wire/end.js";
export type { Pipe, PipeListener } from "../transport/wire/pipe.js";
export type { WorkerStats } from "./common/workshop.js";
export { DecodeWorker } from "./decode-worker.js";
export type { DecodeStep, DecodeWorkerOptions, DisaggRouterOptions, PrefillWorkerOptions } from "./options.js";
export * from "./placement.js";
export { PrefillWorker } from "./prefill-worker.js";
export * from "./protocol.js";
export type { WorkerLoad } from "./router/crew.js";
export type { Outcome, RouterEvent } from "./router/events.js";
export { type DisaggRequest, DisaggRouter, type RouterStats } from "./router.js";
