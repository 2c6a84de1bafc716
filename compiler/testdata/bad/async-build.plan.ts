import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export default definePlan({ name: "bad", build: async (ctx) => ctx.fixed_source() });
