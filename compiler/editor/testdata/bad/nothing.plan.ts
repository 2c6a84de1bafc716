import { definePlan } from "@ranking-dsl/runtime";

export default definePlan({
  name: "nothing",
  build: () => {}, // wrong: no output
});
