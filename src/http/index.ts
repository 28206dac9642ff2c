/** The selection service over HTTP. */
export { HttpRequestError, type HttpRequestErrorCode, KvrouteError } from "../errors.js";
export { createGatewayApi, type GatewayApi, type GatewayApiOptions } from "./gateway-api.js";
export { METRICS_CONTENT_TYPE, metricsResponse, metricsText } from "./metrics.js";
export { createSelectionApi, type SelectionApi, type SelectionApiOptions } from "./selection-api.js";
