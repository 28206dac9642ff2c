// A page: the suite in a module script, with what its import map or its bundler leads to.
import { modules } from "./modules.js";
import { printed, runPortable } from "./portable.js";

runPortable(modules).then(
  (report) => {
    document.querySelector("pre").textContent = printed(report);
  },
  (error) => {
    document.querySelector("pre").textContent = `${error.stack}`;
  },
);
