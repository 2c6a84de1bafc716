import { definePlan } from "@ranking-dsl/runtime";

const redis = EP.redis.shop;
const day = 24 * 3600; // seconds

// Leaves out what the user has or nobody can buy, and puts first what the user will click.
const rank = (products) =>
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

// The start page: what is new, and what goes with what the user looked at; below it, deals.
export default definePlan({
  name: "shop",
  returns: [Key.name, Key.brand, Key.price, Key.score, Key.source],
  build: (ctx) => {
    const fresh = ctx.candidates({ endpoint: redis, key: "added", kind: "sorted_set", min: now() - 14 * day, entity: "product" });
    const similar = ctx
      .candidates({ endpoint: redis, key: "viewed:{user}", entity: "product", onError: "empty" })
      .candidates({ endpoint: redis, key: "also:{id}", limit: 10, entity: "product", onError: "empty" });
    const deals = ctx.candidates({ endpoint: redis, key: "deals", kind: "sorted_set", score: Key.discount, entity: "product", onError: "empty" });

    const home = fresh.union({ with: [similar], names: ["new", "similar"], source: Key.source }).dedupe({ sources: Key.source });
    return { home: rank(home).take({ count: 12 }), deals: rank(deals).take({ count: 4 }) };
  },
});
