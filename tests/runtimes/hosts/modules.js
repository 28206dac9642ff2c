// What the hosts hand to the portable suite, imported by the package's name.
import * as kvroute from "kvroute";
import * as disagg from "kvroute/disagg";
import * as events from "kvroute/events";
import * as http from "kvroute/http";
import * as testing from "kvroute/testing";

export const modules = { kvroute, disagg, events, http, testing };
