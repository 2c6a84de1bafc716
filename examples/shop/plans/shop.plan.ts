import { definePlan } from "@ranking-dsl/runtime";
import { day, rank, redis } from "./rank";

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
