import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export default definePlan({ name: "bad", build: (ctx) => [ctx.fixed_source(), (async () => ctx.fixed_source())()] });
