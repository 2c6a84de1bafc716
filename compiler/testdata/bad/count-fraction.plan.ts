import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export default definePlan({
  name: "bad",
  build: (ctx) =>
    ctx
      .viewer({ endpoint: EP.redis.redis_default })
      .take({ count: 2.5 }),
});
