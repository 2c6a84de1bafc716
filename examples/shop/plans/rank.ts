import type { CandidateSet } from "@ranking-dsl/runtime";

export const redis = EP.redis.shop;
export const day = 24 * 3600; // seconds

// Leaves out what the user has or nobody can buy, and puts first what the user will click.
export const rank = (products: CandidateSet) =>
  products
    .exclude({ endpoint: redis, key: "bought:{user}", failOpen: true })
    .lookup({
      endpoint: redis,
      key: "product:{id}",
      fields: [Key.name, Key.brand, Key.category, Key.price, Key.rating, Key.sold, Key.stock, Key.added],
    })
    .filter({ pred: Key.stock > 0 && Key.price != null })
    .lookup({ endpoint: redis, key: "user:{user}", fields: [Key.budget], onError: "null" })
    .lookup({ endpoint: redis, key: "stat:{user}:{category}", fields: [Key.views, Key.buys], missing: "default" })
    .vm({ outKey: Key.age_days, expr: age(Key.added) / day })
    .vm({ outKey: Key.over_budget, expr: Key.price / Key.budget })
    .model({ model: "clicks", outKey: Key.score })
    .sort({ key: Key.score, order: "desc" })
    .diversify({ rules: [{ by: Key.brand, window: 3 }, { by: Key.category, window: 4, max: 2 }] });
