import { definePlan } from "@ranking-dsl/runtime";

export default definePlan({
  name: "bad",
  returns: [
    Key.score, "x"],
  build: (ctx) => ctx.viewer({ endpoint: EP.redis.redis_default }),
});
