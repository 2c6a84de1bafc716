import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export default definePlan({
  name: "bad",
  build: (ctx) => {
    const v = ctx.viewer({ endpoint: EP.redis.redis_default });
    for (let i = 0; i < P.weight; i++) v.take({ count: 1 });
    return v;
  },
});
