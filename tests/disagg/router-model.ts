export { answerTo, decodeStep, prefill } from "./threads-model.mjs";
