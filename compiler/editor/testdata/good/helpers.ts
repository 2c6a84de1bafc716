import type { CandidateSet } from "@ranking-dsl/runtime";

const factor: number = 1.5;

export function boosted(rows: CandidateSet): CandidateSet {
  return rows.vm({ outKey: Key.score, expr: Key.score * factor });
}

export function fromHome() {
  return Key.country == "US" || Key.country === "CA";
}
