import { definePlan } from "@ranking-dsl/runtime";
import { rank, redis } from "./rank";

// A page of a category: what sells there, in the order in which this user will click it.
export default definePlan({
  name: "category",
  returns: [Key.name, Key.brand, Key.price, Key.score],
  build: (ctx) =>
    rank(ctx.candidates({ endpoint: redis, key: "best:{in_category}", kind: "sorted_set", entity: "product" })).take({
      offset: { param: P.offset, max: 1000, default: 0 },
      count: { param: P.page_size, max: 50, default: 10 },
    }),
});
