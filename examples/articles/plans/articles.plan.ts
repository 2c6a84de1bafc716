import { definePlan } from "@ranking-dsl/runtime";

const redis = EP.redis.articles;
const halfLife = 12 * 3600; // seconds

// An article counts by its likes, and half as much twelve hours later.
const popularity = Math.log(2 + coalesce(Key.likes, 0)) * decay(age(Key.created_at), halfLife);

// The page, the reader and the time of day lift what fits them.
const fit =
  (Key.topic == P.topic ? 2 : 1) *
  (Key.lang == P.lang ? 1.5 : 1) *
  (P.hour >= 18 && Key.tags.includes("long-read") ? 1.3 : 1);

// Ranks the articles in the inbox of a user.
export default definePlan({
  name: "articles",
  build: (ctx) =>
    ctx
      .candidates({ endpoint: redis, key: "inbox:{user}", kind: "sorted_set", limit: 100 })
      .filter({ pred: !Key.id.in(P.seen) })
      .lookup({
        endpoint: redis,
        key: "article:{id}",
        fields: [Key.title, Key.topic, Key.lang, Key.created_at, Key.likes, Key.tags, Key.premium],
      })
      .filter({ pred: Key.title != null && (!Key.premium || P.subscriber) })
      .vm({ outKey: Key.score, expr: popularity * fit })
      .sort({ key: Key.score, order: "desc" })
      .take({ count: 10 }),
});
