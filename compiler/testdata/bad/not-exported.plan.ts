import { definePlan, E, Pred } from "@ranking-dsl/runtime";

definePlan({ name: "bad", build: (ctx) => ctx.fixed_source() });
