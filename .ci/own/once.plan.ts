import { definePlan } from "@ranking-dsl/runtime";

export default definePlan({
  name: "once",
  build: (ctx) => {
    const rows = ctx.viewer({ endpoint: EP.redis.redis_default }).follow({ endpoint: EP.redis.redis_default, fanout: 4 });
    return rows.concat({ rhs: rows }).distinct().activity({ endpoint: EP.redis.redis_default, outKey: Key.final_score }).take({ count: 3 });
  },
});
