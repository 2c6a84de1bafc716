// The liked articles of the front page, the fresh ones first.
import { definePlan } from "@ranking-dsl/runtime";

export default definePlan({
  name: "fresh",
  build: (ctx) =>
    ctx
      .candidates({ endpoint: EP.redis.news, key: "front_page", limit: 100 })
      .lookup({ endpoint: EP.redis.news, key: "article:{id}", fields: [Key.likes, Key.created_at], missing: "drop" })
      .vm({ outKey: Key.score, expr: Key.likes * decay(age(Key.created_at), coalesce(P.half_life, 3600)) })
      .sort({ key: Key.score, order: "desc" })
      .take({ count: 10 }),
});
