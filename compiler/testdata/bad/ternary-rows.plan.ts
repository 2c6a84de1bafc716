import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export default definePlan({
  name: "bad",
  build: (ctx) =>
    ctx
      .viewer({ endpoint: EP.redis.redis_default })
      .concat({ rhs: Key.id > 5 ? ctx.fixed_source() : ctx.viewer({ endpoint: EP.redis.redis_default }) }),
});
