import { definePlan } from "@ranking-dsl/runtime";

export default definePlan({
  name: "every",
  build: (ctx) => ctx.candidates({ endpoint: EP.redis.redis_default, key: "follow:{user}" }).every({ n: 2 }),
});
