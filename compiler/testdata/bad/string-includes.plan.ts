import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export default definePlan({
  name: "bad",
  build: (ctx) =>
    ctx
      .viewer({ endpoint: EP.redis.redis_default })
      .filter({ pred: Key.country.includes("S") || contains(Key.id, "x") }),
});
