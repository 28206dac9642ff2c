// How the three modules of the seam get at the core: embedded as text, or imported by the runtime itself.
declare module "*/core.wasm?base64" {
  const base64: string;
  export default base64;
}
declare module "*/core.wasm" {
  const module: WebAssembly.Module;
  export default module;
}
declare module "*/core.wasm?module" {
  const module: WebAssembly.Module;
  export default module;
}
