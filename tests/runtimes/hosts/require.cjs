// Node: require, of the package and of the suite. It fails where anything has a top-level await.
const modules = {
  kvroute: require("kvroute"),
  disagg: require("kvroute/disagg"),
  events: require("kvroute/events"),
  http: require("kvroute/http"),
  testing: require("kvroute/testing"),
};
const { printed, runPortable } = require("./portable.js");

runPortable(modules).then((report) => console.log(printed(report)));
