import { Hono } from "hono";
import { describe, expect, test } from "vitest";
import { PrefixIndex } from "../../src/core/prefix-index.js";
import { WorkersExhaustedError } from "../../src/errors.js";
import { createSelectionApi } from "../../src/http/selection-api.js";
import { serveSelection } from "../../src/node/serve-selection.js";
import { roundRobin } from "../../src/selection/policy.js";
import { SelectionService } from "../../src/selection/service.js";
import { ApiStage, expectError, sender, TOKEN } from "./api-stage.js";

const WORKER = { worker_id: 1, block_size: 4 };
const CONTROL = [
  ["POST", "/workers", WORKER],
  ["PATCH", "/workers/1", {}],
  ["DELETE", "/workers/1", undefined],
] as const;

describe("what changes workers", () => {
  test.each(CONTROL)("is not there without a control token: %s %s is a 404", async (method, path, body) => {
    const { send, service } = new ApiStage({ controlToken: undefined }).add({ workerId: 1 });
    expectError(await send(method, path, body), 404, "KVROUTE_HTTP_NOT_FOUND");
    expect((await send("GET", "/workers")).status).toBe(200);
    expect(service.workers.size).toBe(1);
  });

  describe.each(CONTROL)("%s %s takes the control token", (method, path, body) => {
    test.each([
      "",
      "Bearer",
      "Bearer ",
      "Basic open-sesame",
      "open-sesame",
      "Bearer open-sesam",
      "Bearer open-sesame2",
      "Bearer open-sesame open-sesame",
      "Bearer ppen-sesame",
      "Bearer open-sesameopen-sesame",
    ])("and not %j", async (authorization) => {
      const { send, service } = new ApiStage().add({ workerId: 1, weight: 2 });
      const reply = await send(method, path, body, { authorization });
      expectError(reply, 401, "KVROUTE_HTTP_UNAUTHORIZED");
      expect(reply.headers.get("www-authenticate")).toBe("Bearer");
      expect(reply.text).not.toContain(TOKEN);
      expect(service.workers.get(1)?.weight).toBe(2);
    });

    test("before it reads anything", async () => {
      const { send } = new ApiStage({ maxBodyBytes: 1 });
      expect((await send(method, path, body, { authorization: "Bearer no" })).status).toBe(401);
    });

    test("in any case of the scheme", async () => {
      const { send } = new ApiStage().add({ workerId: 1 });
      const reply = await send(method, path, body, { authorization: `bearer  ${TOKEN}` });
      expect(reply.status).toBeLessThan(300);
    });
  });

  test.each(["", " ", "two words", "ümlaut", "line\n", 7, null])("takes no token like %j", (controlToken) => {
    const make = () => createSelectionApi({ service: new SelectionService(), controlToken: controlToken as string });
    expect(make).toThrow(expect.objectContaining({ code: "KVROUTE_OPTION" }));
  });
});

describe("paths and methods", () => {
  const { send, api } = new ApiStage();

  test.each([
    "/",
    "/nothing",
    "/select/",
    "/workers/1/2",
    "/reservations//touch",
    "/reservations/s/nothing",
    "/v1/select",
  ])("%s is not found", async (path) => {
    const reply = await send("POST", path, {});
    expectError(reply, 404, "KVROUTE_HTTP_NOT_FOUND");
    expect(reply.body.error).toBe("route not found");
  });

  test.each([
    ["GET", "/select", "POST"],
    ["PUT", "/workers", "POST, GET"],
    ["GET", "/workers/1", "PATCH, DELETE"],
    ["GET", "/reservations", "POST"],
    ["POST", "/reservations/s", "DELETE"],
    ["GET", "/reservations/s/output_block", "POST"],
    ["POST", "/health", "GET"],
    ["OPTIONS", "/loads", "GET"],
    ["DELETE", "/openapi.json", "GET"],
  ])("%s %s is a 405 that allows %s", async (method, path, allow) => {
    const reply = await send(method, path);
    expectError(reply, 405, "KVROUTE_HTTP_METHOD");
    expect(reply.body.error).toBe("method not allowed");
    expect(reply.headers.get("allow")).toBe(allow);
  });

  test("without a control token a method that nobody has is a 405", async () => {
    const closed = new ApiStage({ controlToken: undefined });
    expect((await closed.send("PUT", "/workers")).headers.get("allow")).toBe("GET");
    expect((await closed.send("PUT", "/workers/1")).status).toBe(404);
  });

  test("HEAD is GET without a body", async () => {
    const response = await api.fetch(new Request("http://api.test/health", { method: "HEAD" }));
    expect([response.status, await response.text()]).toEqual([200, ""]);
  });
});

describe("what goes wrong inside", () => {
  const failing = (error: unknown) => {
    const errors: unknown[] = [];
    const policy = {
      ...roundRobin(),
      choose: () => {
        throw error;
      },
    };
    const { send } = new ApiStage({ onError: (told) => errors.push(told) }, { policy }).add({ workerId: 1 });
    return { errors, reply: send("POST", "/select", { token_ids: [1] }) };
  };

  test("is a 500 that tells nothing, and is told to onError", async () => {
    const secret = new Error("the password is swordfish");
    const { errors, reply } = failing(secret);
    expectError(await reply, 500, "KVROUTE_HTTP_INTERNAL");
    expect((await reply).text).not.toContain("swordfish");
    expect(errors).toEqual([secret]);
  });

  test("is a 500 if it is no error at all", async () => {
    expectError(await failing("a text").reply, 500, "KVROUTE_HTTP_INTERNAL");
  });

  test("is a 503 where the tables of the service are full or out of memory", async () => {
    const index = new PrefixIndex({ maxMemoryBytes: 3 * 65_536 });
    const { send, service } = new ApiStage({}, { index }).add({ workerId: 1 });
    const token_ids = Array.from({ length: 4 * 20_000 }, (_, at) => at);
    expectError(await send("POST", "/select_and_reserve", { token_ids }), 503, "KVROUTE_MEMORY_LIMIT");
    expect(service.stats().bookings).toBe(0);
    expect(new WorkersExhaustedError(1).status).toBe(503);
  });

  test("is told as it is where kvroute knows it", async () => {
    const policy = { ...roundRobin(), choose: () => ({ index: 7 }) };
    const { send } = new ApiStage({}, { policy }).add({ workerId: 1 });
    expectError(await send("POST", "/select", { token_ids: [1] }), 500, "KVROUTE_OPTION");
  });
});

test.each([{}, { service: {} }, { maxBodyBytes: 0 }, { maxBodyBytes: 1.5 }, { maxBodyBytes: 2 ** 30 + 1 }])(
  "options like %j are refused",
  (options) => {
    const service = new SelectionService();
    const given = "maxBodyBytes" in options ? { service, ...options } : options;
    expect(() => createSelectionApi(given as never)).toThrow(expect.objectContaining({ code: "KVROUTE_OPTION" }));
  },
);

test("it can be mounted in an application", async () => {
  const stage = new ApiStage().add({ workerId: 1 });
  const app = new Hono().mount("/routing", stage.api.fetch);
  const send = sender(async (request) => app.fetch(request), "http://app.test");
  expect((await send("POST", "/routing/select", { token_ids: [1] })).body.worker_id).toBe(1);
  expect((await send("POST", "/routing/reservations/a%2Fb/touch")).status).toBe(404);
});

test("a server listens where it is told and stops", async () => {
  const server = await serveSelection({ service: new SelectionService() });
  expect(server.url).toBe(`http://127.0.0.1:${server.port}`);
  expect((await fetch(`${server.url}/ready`)).status).toBe(503);
  await expect(serveSelection({ service: new SelectionService(), port: server.port })).rejects.toThrow("EADDRINUSE");
  await server.close();
  await expect(fetch(`${server.url}/ready`)).rejects.toThrow();
});
