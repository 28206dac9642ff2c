/** The engine for tests of `kvroute/testing`, and the server that it listens in. */
export * from "../testing/index.js";
export { type FakeEngineServer, type FakeEngineServerOptions, serveFakeEngine } from "./fake-engine.js";
