import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export default definePlan({
  name: "bad",
  build: (ctx) =>
    ctx
      .viewer({ endpoint: EP.redis.redis_default })
      .vm({ outKey: Key.id, expr: Key.scor / 2 })
      .filter({ pred: Key.country == null })
      .sort({ key: Key.score, order: "down" })
      .take({ count: -1 }),
});
