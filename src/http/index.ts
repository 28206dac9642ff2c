/** The selection service over HTTP. */
export { HttpRequestError, type HttpRequestErrorCode, KvrouteError } from "../errors.js";
export { createSelectionApi, type SelectionApi, type SelectionApiOptions } from "./selection-api.js";
