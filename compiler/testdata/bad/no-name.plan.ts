import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export default definePlan({ build: (ctx) => ctx.fixed_source() });
