import { expect, failure, forUsers, json, log, now, rank, redis, service, set, sortedSet, test } from "@ranking-dsl/test";
import type { Answer, Row } from "@ranking-dsl/test";

now("2026-03-01T12:00:00Z");
redis({ "user:1": { country: "US", age: 7, gone: null }, "follow:1": [2, 3], seen: set([1, 2n]), scores: sortedSet({ a: 1 }), text: json({ a: [1] }), old: null });

const first = (answer: Answer): Row => answer.candidates[0];

test("everything", () => {
  const answer = rank({ user_id: 1, request_id: "visit-7", plan: "natural", param_overrides: { weight: 0.5 }, require: ["n1"], deadline_ms: 50, now: 5, plan_version: true });
  expect(answer.plan_version?.side).equals("a");
  expect(answer).ids(1, 2).ids([1, 2n, "sku"]).contains(1).lacks(2).before(1, 2).count(2).column("score", [1, null]).row(1, { country: "US", score: null });
  expect(answer).every((row) => (row.score ?? 0) > 0, "a score").sorted("score", "desc").shelves("home").complete().lacking("n1", { status: "late" }).snapshot();
  expect(answer.outputs.home).ids(1);
  expect(answer).shelf("home").ids();
  expect(failure({ user_id: "u-1" }).error).equals("Invalid request");
  log(first(answer), now);
  forUsers(1, 100, (user) => {
    expect(rank({ user_id: user })).count(3);
  });
});
