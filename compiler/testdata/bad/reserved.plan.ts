import { definePlan, E, Pred } from "@ranking-dsl/runtime";

const __rankd_host__ = 1;
export default definePlan({ name: "bad", build: (ctx) => ctx.fixed_source() });
