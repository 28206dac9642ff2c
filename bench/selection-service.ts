import { main, type Runner, type TimedSuite } from "./harness.js";
import { KvrouteService } from "./selection-service/kvroute-service.js";
import { MapService } from "./selection-service/map-service.js";
import { Hashing, Lives, Selects } from "./selection-service/runners.js";
import { BLOCK_TOKENS, type HashPrompt, type Service } from "./selection-service/scene.js";

// The built package, as a user imports it, and only in the processes that measure it.
const importHash = async (): Promise<HashPrompt> => {
  const { hashTokens } = await import("kvroute");
  return (tokens) => hashTokens(tokens, { blockSize: BLOCK_TOKENS }).sequence;
};

const onKvroute = async (start: (service: Service, hash: HashPrompt) => Runner): Promise<Runner> =>
  start(new KvrouteService(await import("kvroute")), await importHash());

const onMaps = async (start: (service: Service, hash: HashPrompt) => Runner): Promise<Runner> => {
  const hash = await importHash();
  return start(new MapService(hash), hash);
};

const hashing: TimedSuite = {
  kind: "time",
  title: "Selection service: select beside its own hashing",
  operation: "choose a worker for a prompt of 8,192 tokens in blocks of 16, among 64 workers",
  rounds: 21,
  contenders: {
    "hashing the prompt alone": async () => new Hashing(await importHash()),
    "select, 10,000 entries": () => onKvroute((service, hash) => new Selects(service, hash, 10_000, "hashes")),
    "select, 100,000 entries": () => onKvroute((service, hash) => new Selects(service, hash, 100_000, "hashes")),
    "select, 1,000,000 entries": () => onKvroute((service, hash) => new Selects(service, hash, 1_000_000, "hashes")),
  },
};

const choosing: TimedSuite = {
  kind: "time",
  title: "Selection service: select beside plain Maps",
  operation: "choose a worker for a prompt of 8,192 tokens in blocks of 16, among 64 workers, 1,000,000 entries",
  rounds: 15,
  contenders: {
    "kvroute SelectionService": () => onKvroute((service, hash) => new Selects(service, hash, 1_000_000, "workers")),
    Maps: () => onMaps((service, hash) => new Selects(service, hash, 1_000_000, "workers")),
  },
};

const living: TimedSuite = {
  kind: "time",
  title: "Selection service: the life of a booking",
  operation: "reserve 512 blocks on a worker, prefillComplete, free; 128 other requests unfinished, 100,000 entries",
  rounds: 15,
  contenders: {
    "kvroute SelectionService": () => onKvroute((service, hash) => new Lives(service, hash, 100_000)),
    Maps: () => onMaps((service, hash) => new Lives(service, hash, 100_000)),
  },
};

await main(import.meta.url, [hashing, choosing, living]);
