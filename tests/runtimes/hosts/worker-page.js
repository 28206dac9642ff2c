// The page of the Web Worker.
const worker = new Worker(new URL("./web-worker.js", import.meta.url), { type: "module" });
worker.addEventListener("message", ({ data }) => {
  document.querySelector("pre").textContent = data;
});
worker.addEventListener("error", (event) => {
  document.querySelector("pre").textContent = `the worker failed: ${event.message}`;
});
