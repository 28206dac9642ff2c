// Recorded behaviour of the original, unpacked: the bundle of the portable suite carries it (see ../stage.ts).
declare module "kvroute-vectors" {
  /** Files of tests/conformance/vectors by their folder and name, without `.gz`. */
  const vectors: Readonly<Record<string, string>>;
  export default vectors;
}
