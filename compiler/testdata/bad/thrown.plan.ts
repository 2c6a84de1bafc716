import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export default definePlan({
  name: "bad",
  build: (ctx) => {
    const v = ctx.viewer({ endpoint: EP.redis.redis_default });
    if (1 + 1 === 2) throw new Error("no such country: " + "XX");
    return v;
  },
});
