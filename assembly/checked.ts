// The entry of the checked build: the core as it ships, and what lets tests look inside and make memory fail.
export * from "./core";
export { verifyBooked } from "./booked-verify";
export { refuseGrowth } from "./layout";
export { verifyIndex } from "./prefix-verify";
export { verify } from "./verify";
