import { definePlan } from "@ranking-dsl/runtime";

export const other = definePlan({ name: "other", build: (ctx) => ctx.fixed_source() });
