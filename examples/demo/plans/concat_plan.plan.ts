import { definePlan } from "@ranking-dsl/runtime";

export default definePlan({
  name: "concat_plan",
  build: (ctx) => {
    const v = ctx.viewer({ endpoint: EP.redis.redis_default, trace: null });
    const left = v.follow({ endpoint: EP.redis.redis_default, fanout: 4, trace: "L" });
    const right = v.recommendation({ endpoint: EP.redis.redis_default, fanout: 4, trace: "R" });
    return left.concat({ rhs: right, trace: "C" }).take({ count: 8, trace: "T" });
  },
});
