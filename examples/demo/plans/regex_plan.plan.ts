import { definePlan } from "@ranking-dsl/runtime";

export default definePlan({
  name: "regex_plan",
  build: (ctx) =>
    ctx
      .viewer({ endpoint: EP.redis.redis_default })
      .follow({ endpoint: EP.redis.redis_default, fanout: 10 })
      .filter({ pred: regex(Key.country, "US") })
      .take({ count: 5 }),
});
