// What the hosts hand to the portable suite, imported by the package's name.
import * as kvroute from "kvroute";
import * as disagg from "kvroute/disagg";

export const modules = { kvroute, disagg };
