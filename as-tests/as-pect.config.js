// One spec alone: SPEC=as-tests/lru.spec.ts npx asp -c … -a … (a file named on the command line would be added to these)
export default {
  entries: [process.env.SPEC ?? "as-tests/**/*.spec.ts"],
  include: ["as-tests/**/*.include.ts"],
  disclude: [/node_modules/],
  async instantiate(memory, createImports, instantiate, binary) {
    return instantiate(binary, createImports({ env: { memory } }));
  },
  outputBinary: false,
};
