export { serveTransport, type TransportServer, type TransportServerOptions } from "./websocket-server.js";
