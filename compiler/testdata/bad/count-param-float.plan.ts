import { definePlan } from "@ranking-dsl/runtime";

export default definePlan({
  name: "bad",
  build: (ctx) =>
    ctx
      .viewer({ endpoint: EP.redis.redis_default })
      .take({ count: { param: P.weight, max: 10 } }),
});
