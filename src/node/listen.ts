import type { AddressInfo, Server } from "node:net";

/** Where a server listens. */
export interface Listening {
  readonly port: number;
  /** Host and port as a URL has them. */
  readonly authority: string;
}

/** Makes a server listen, and tells where: at port 0 the system picks one. */
export async function listen(
  server: Pick<Server, "once" | "listen" | "address">,
  host: string,
  port: number,
): Promise<Listening> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const { address, family, port: taken } = server.address() as AddressInfo;
  return { port: taken, authority: `${family === "IPv6" ? `[${address}]` : address}:${taken}` };
}
