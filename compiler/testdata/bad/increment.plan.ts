import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export default definePlan({
  name: "bad",
  build: (ctx) => {
    const v = ctx.viewer({ endpoint: EP.redis.redis_default });
    let x = Key.id;
    x++;
    return v.vm({ outKey: Key.score, expr: x });
  },
});
