export default definePlan({ name: "bad", build: (ctx) => ctx.fixed_source() });
