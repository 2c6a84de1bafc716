import { expect, forUsers, now, rank, redis, service, sortedSet, test } from "@ranking-dsl/test";

test("types", () => {
  rank({ user: 1 }); // wrong: user_id
  rank({ user_id: 1, param_overrides: { weight: "heavy" } }); // wrong: a number
  rank({ user_id: 1, param_overrides: { wieght: 1 } }); // wrong: no such parameter
  redis({ a: { b: { c: 1 } } }); // wrong: a hash has no hashes
  redis([1]); // wrong: an object by key
  sortedSet({ a: "1" }); // wrong: scores are numbers
  now(new Date()); // wrong: a text or a number
  expect(rank({ user_id: 1 })).column("scroe", [1]); // wrong: no such column
  expect(rank({ user_id: 1 })).row(1, { scroe: 1 }); // wrong: no such column
  expect(rank({ user_id: 1 })).sorted("score", "down"); // wrong: asc or desc
  rank({ user_id: 1 }).candidates[0].contry; // wrong: no such column
  forUsers(1, (user) => {}); // wrong: first and last
  service("no such service", {}); // wrong: no such endpoint
});
test("async", async () => {}); // tsc takes it, and the sandbox refuses it
test(() => {}); // wrong: a name first
