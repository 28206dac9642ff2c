// The page: controls, the picture of the blocks, and the last requests.

import { Engine } from "./engine.js";

const LOG_LINES = 8;
const element = (id) => document.getElementById(id);
const setting = (id) => Number(element(id).value);

let engine;
let lines = [];
let timer;

function restart() {
  engine = new Engine(setting("capacity"));
  lines = [];
  draw();
}

function step() {
  const { conversation, blocks, hits, evicted, isRefused } = engine.request(setting("conversations"));
  const what = isRefused ? "no room" : `${hits} hit, ${blocks - hits} computed, ${evicted} evicted`;
  lines = [`conversation ${conversation}: ${blocks} blocks, ${what}`, ...lines].slice(0, LOG_LINES);
  draw();
}

/** Lets requests come at the rate that is set. */
function run() {
  clearInterval(timer);
  const rate = setting("rate");
  if (rate > 0) timer = setInterval(step, 1_000 / rate);
}

function square(state, owner) {
  const made = document.createElement("i");
  made.className = owner === 0 ? `${state} shared` : state;
  if (owner > 0) made.style.setProperty("--hue", String((owner * 67 + 20) % 360));
  return made;
}

function draw() {
  const { active, cached, free } = engine.picture();
  const empty = Array.from({ length: free }, () => document.createElement("i"));
  const used = [...active.map((owner) => square("active", owner)), ...cached.map((owner) => square("cached", owner))];
  element("blocks").replaceChildren(...used, ...empty);
  const { requests, blocks, hits, evicted, refused } = engine.counts;
  const share = blocks === 0 ? 0 : Math.round((100 * hits) / blocks);
  const shown = {
    requests,
    hits: `${share} %`,
    evicted,
    refused,
    active: active.length,
    inactive: cached.length,
    free,
  };
  for (const [id, value] of Object.entries(shown)) element(id).textContent = String(value);
  element("log").replaceChildren(
    ...lines.map((line) => Object.assign(document.createElement("li"), { textContent: line })),
  );
}

for (const input of document.querySelectorAll("input")) {
  const show = () => {
    document.querySelector(`output[for="${input.id}"]`).textContent = input.value;
  };
  input.addEventListener("input", show);
  show();
}
element("capacity").addEventListener("input", restart);
element("rate").addEventListener("input", run);
element("step").addEventListener("click", step);
element("restart").addEventListener("click", restart);
restart();
run();
