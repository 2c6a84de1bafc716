import { definePlan } from "@ranking-dsl/runtime";

export default definePlan({
  name: "bad",
  build: (ctx) =>
    ctx
      .viewer({ endpoint: EP.redis.redis_default })
      .take({ count: { param: 4, max: 10 } }),
});
