import { definePlan, E, Pred } from "@ranking-dsl/runtime";

const a = ;
export default definePlan({ name: "bad", build: (ctx) => ctx.fixed_source() });
