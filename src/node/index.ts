export {
  type Gateway,
  type GatewayServer,
  type GatewayServerOptions,
  type Refusal,
  serveGateway,
} from "./serve-gateway.js";
export { type SelectionServer, type SelectionServerOptions, serveSelection } from "./serve-selection.js";
export { type UndiciUpstream, type UndiciUpstreamOptions, undiciUpstream } from "./undici-upstream.js";
export { serveTransport, type TransportServer, type TransportServerOptions } from "./websocket-server.js";
