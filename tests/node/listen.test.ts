import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { serveFakeEngine } from "../../src/node/fake-engine.js";
import { serveGateway } from "../../src/node/serve-gateway.js";
import { serveSelection } from "../../src/node/serve-selection.js";
import { serveTransport } from "../../src/node/websocket-server.js";
import { SelectionService } from "../../src/selection/service.js";
import { TransportHub } from "../../src/transport/hub.js";
import { whole } from "./serve.js";

const SERVERS: Readonly<Record<string, (port: never) => Promise<{ close(): Promise<void> }>>> = {
  serveGateway: (port) => serveGateway({ gateway: { answer: async () => whole("done") }, port }),
  serveSelection: (port) => serveSelection({ service: new SelectionService(), port }),
  serveFakeEngine: (port) => serveFakeEngine({ port }),
  serveTransport: (port) => serveTransport({ hub: new TransportHub(), port }),
};

describe.each(Object.entries(SERVERS))("%s", (_, serve) => {
  test.each([-1, 65_536, 1.5, Number.NaN, "80", {}])("refuses the port %j with a sentence", async (port) => {
    await expect(serve(port as never)).rejects.toMatchObject({
      code: "KVROUTE_OPTION",
      message: expect.stringMatching(/^Expected port to be a whole number from 0 to 65535, got /),
    });
  });

  test("listens at a port that is free", async () => {
    const server = await serve(0 as never);
    await server.close();
  });
});

describe("the connections of serveSelection", () => {
  test("are as many as it is told, and those beyond are closed", async () => {
    const server = await serveSelection({ service: new SelectionService(), maxConnections: 2 });
    const sockets = Array.from({ length: 3 }, () => connect(server.port, "127.0.0.1"));
    const closed = await Promise.race(
      sockets.map(async (socket, at) =>
        once(
          socket.on("error", () => {}),
          "close",
        ).then(() => at),
      ),
    );
    for (const [at, socket] of sockets.entries()) {
      if (at === closed) continue;
      socket.write("GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
      expect(String((await once(socket, "data"))[0])).toMatch(/^HTTP\/1\.1 200 /);
    }
    await server.close();
  });

  test.each([0, 1.5, 1_048_577])("cannot be %d", async (maxConnections) => {
    const options = { service: new SelectionService(), maxConnections };
    await expect(serveSelection(options)).rejects.toMatchObject({ code: "KVROUTE_OPTION" });
  });
});
