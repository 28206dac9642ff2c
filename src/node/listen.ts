import type { AddressInfo, Server } from "node:net";
import { countOption } from "../selection/policies/numbers.js";

/** Where a server listens. */
export interface Listening {
  readonly port: number;
  /** Host and port as a URL has them. */
  readonly authority: string;
}

const PORT_MAX = 65_535;

/**
 * Makes a server listen, and tells where: at port 0 the system picks one.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if the port is none; what the system says if it cannot be listened at
 */
export async function listen(
  server: Pick<Server, "once" | "listen" | "address">,
  host: string,
  port: number,
): Promise<Listening> {
  countOption("port", port, 0, PORT_MAX);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const { address, family, port: taken } = server.address() as AddressInfo;
  return { port: taken, authority: `${family === "IPv6" ? `[${address}]` : address}:${taken}` };
}
