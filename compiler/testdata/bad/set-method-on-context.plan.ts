import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export default definePlan({ name: "bad", build: (ctx) => ctx.take({ count: 5 }) });
