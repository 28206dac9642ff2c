import { same } from "../../support/agree.js";
import { type Case, Skip, throwsCode } from "./parts.js";

export const eventCases: readonly Case[] = [
  {
    name: "KV events of an engine, as they come over the wire, lead to entries of an index",
    async run({ kvroute, events, testing }) {
      if (events === undefined) throw new Skip("the host has no kvroute/events");
      const engine = testing.createFakeEngine({ blockSize: 4, speedupRatio: Number.POSITIVE_INFINITY });
      const body = JSON.stringify({ prompt: "A prompt of several blocks of tokens each", max_tokens: 1 });
      await engine.fetch("http://engine/v1/completions", { method: "POST", body });
      const index = new kvroute.PrefixIndex();
      const feed = new events.KvEventFeed({ index, blockSize: 4 });
      const worker = { workerId: "a", dpRank: 0 };
      for (const message of engine.kvMessages()) {
        feed.apply(worker, { seq: BigInt(message.seq), ...events.decodeKvEvents(testing.encodeKvEvents(message)) });
      }
      same("blocks", engine.kvMessages().length > 0, index.size.blocks > 0);
      throwsCode("KVROUTE_KV_EVENT_PAYLOAD", () => events.decodeKvEvents(Uint8Array.of(0xc1)));
    },
  },
];
