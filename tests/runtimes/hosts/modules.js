// What the hosts hand to the portable suite, imported by the package's name.
import * as kvroute from "kvroute";
import * as disagg from "kvroute/disagg";
import * as http from "kvroute/http";

export const modules = { kvroute, disagg, http };
