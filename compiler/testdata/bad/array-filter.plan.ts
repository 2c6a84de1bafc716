import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export default definePlan({
  name: "bad",
  build: (ctx) => {
    const v = ctx.viewer({ endpoint: EP.redis.redis_default });
    const few = [1, 2].filter((n) => Key.id > n);
    return v.take({ count: few.length + 1 });
  },
});
