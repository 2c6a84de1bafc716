import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export const x = 1;
