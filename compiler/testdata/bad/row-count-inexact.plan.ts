import { definePlan } from "@ranking-dsl/runtime";

export default definePlan({ name: "bad", build: (ctx) => ctx.fixed_source({ rowCount: 1152921504606846976 }) });
