import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export default definePlan({
  name: "bad",
  build: (ctx) => {
    const v = ctx.viewer({ endpoint: EP.redis.redis_default });
    let n = 1;
    while (n < Key.id) n++;
    return v.take({ count: n });
  },
});
