// workerd: the suite in a handler. Nothing is made at global scope, where workerd, unlike in handlers, would still compile.
import { modules } from "./modules.js";
import { printed, runPortable } from "./portable.js";

export default {
  async fetch() {
    return new Response(printed(await runPortable(modules)));
  },
};
