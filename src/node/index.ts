export { type SelectionServer, type SelectionServerOptions, serveSelection } from "./serve-selection.js";
export { serveTransport, type TransportServer, type TransportServerOptions } from "./websocket-server.js";
