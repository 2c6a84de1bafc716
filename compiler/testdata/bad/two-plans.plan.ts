import { definePlan, E, Pred } from "@ranking-dsl/runtime";

definePlan({ name: "one", build: (ctx) => ctx.fixed_source() });
export default definePlan({ name: "bad", build: (ctx) => ctx.fixed_source() });
