import { expect, test } from "vitest";
import { HeaderList } from "../../src/gateway/header-list.js";
import { fetchUpstream } from "../../src/gateway/upstream.js";
import { upstreamContract } from "./upstream.js";

upstreamContract({ name: "fetch", open: () => ({ upstream: fetchUpstream(), close: async () => {} }) });

test("a redirect that the runtime hides is no answer", async () => {
  const hidden = { status: 0, type: "opaqueredirect", headers: new Headers(), body: null } as Response;
  const upstream = fetchUpstream(async () => hidden);
  const { signal } = new AbortController();
  const sent = upstream.send({ method: "GET", url: "http://a/", headers: HeaderList.of(), signal });
  await expect(sent).rejects.toMatchObject({ code: "KVROUTE_UPSTREAM_UNREACHABLE" });
});
