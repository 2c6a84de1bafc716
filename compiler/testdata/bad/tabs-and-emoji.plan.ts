import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export default definePlan({
	name: "bad",
	build: (ctx) =>
		ctx.fixed_source().take({ trace: "😀", cuont: 5, count: 1 }),
});
