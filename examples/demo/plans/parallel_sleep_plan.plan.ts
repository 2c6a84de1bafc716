import { definePlan } from "@ranking-dsl/runtime";

export default definePlan({
  name: "parallel_sleep_plan",
  build: (ctx) => {
    const v = ctx.viewer({ endpoint: EP.redis.redis_default });
    const left = v.sleep({ durationMs: 20 });
    const right = v.sleep({ durationMs: 20 });
    return left.concat({ rhs: right });
  },
});
