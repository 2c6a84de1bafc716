import { definePlan, E, Pred } from "@ranking-dsl/runtime";

export default definePlan({ name: "bad" });
