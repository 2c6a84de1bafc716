import { definePlan } from "@ranking-dsl/runtime";

// Ranks the users whom the user of the request follows.
export default definePlan({
  name: "example",
  build: (ctx) => {
    const me = ctx.viewer({ endpoint: EP.redis.redis_default });
    return me
      .follow({ endpoint: EP.redis.redis_default, fanout: 50 })
      .filter({ pred: Key.country.in(["US", "CA"]) })
      .vm({ outKey: Key.score, expr: Key.id * coalesce(P.weight, 0.5) })
      .sort({ key: Key.score, order: "desc" })
      .take({ count: 3 });
  },
});
