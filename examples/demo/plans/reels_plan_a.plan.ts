import { definePlan } from "@ranking-dsl/runtime";

export default definePlan({
  name: "reels_plan_a",
  build: (ctx) =>
    ctx
      .viewer({ endpoint: EP.redis.redis_default })
      .follow({ endpoint: EP.redis.redis_default, fanout: 10 })
      .vm({ outKey: Key.final_score, expr: Key.id * coalesce(P.media_age_penalty_weight, 0.2) })
      .filter({ pred: Key.final_score >= 0.6 })
      .vm({ outKey: Key.final_score, expr: Key.final_score })
      .take({ count: 5 }),
});
