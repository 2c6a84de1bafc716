import { definePlan } from "@ranking-dsl/runtime";
import { missing } from "@ranking-dsl/runtime"; // wrong: no such export
import { helper } from "./nowhere"; // wrong: no such file

export default definePlan({ // wrong: no name
  build: (ctx) => ctx.fixedSource({ rowCount: missing + helper }),
});
