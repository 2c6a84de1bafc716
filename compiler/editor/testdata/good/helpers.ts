import type { CandidateSet, Context } from "@ranking-dsl/runtime";

const factor: number = 1.5;

export function boosted(rows: CandidateSet): CandidateSet {
  return rows.vm({ outKey: Key.score, expr: Key.score * factor });
}

export function fromHome() {
  return Key.country == "US" || Key.country === "CA";
}

export const friends = (ctx: Context): CandidateSet => ctx.viewer({ endpoint: EP.redis.redis_default }).follow({ endpoint: EP.redis.redis_default });
