// Takes away what would make a plan depend on more than its source, and what makes code from text.
// Constructors of functions stay reachable through any function, so they go by their prototypes.
(function (refuse) {
  "use strict";
  const stop = (why) => Object.freeze(function () { refuse(why); });
  const noEval = stop("plan code cannot make code from text");
  const functions = [
    function () {},
    function* () {},
    async function () {},
  ];
  for (const f of functions) {
    Object.defineProperty(Object.getPrototypeOf(f), "constructor", { value: noEval, writable: false, configurable: false });
  }
  for (const name of ["eval", "Function", "Date", "Promise", "GoError"]) delete globalThis[name];
  Object.defineProperty(Math, "random", {
    value: stop("plans have no randomness: the same source gives the same artifact"),
  });
})
