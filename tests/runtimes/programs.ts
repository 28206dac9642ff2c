/** Where a runtime's program lies among the packages of tests/runtimes/binaries. */
export const PROGRAMS = {
  "Node 22": "node-22/bin/node",
  "Node 24": "node-24/bin/node",
  "Node 26": "node-26/bin/node",
  Deno: "@deno/linux-x64-glibc/deno",
  Bun: "@oven/bun-linux-x64/bin/bun",
  "Cloudflare workerd": "@cloudflare/workerd-linux-64/bin/workerd",
} as const;
