/** The selection service over HTTP. */
export { createSelectionApi, type SelectionApi, type SelectionApiOptions } from "./selection-api.js";
