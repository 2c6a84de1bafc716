import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export default definePlan({
  name: "bad",
  build: (ctx) => {
    const v = ctx.viewer({ endpoint: EP.redis.redis_default });
    function* f(): any { let x: any = 1; x += yield; return x; }
    f();
    return v;
  },
});
