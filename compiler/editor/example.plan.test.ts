import { expect, forUsers, rank, redis, test } from "@ranking-dsl/test";

// What Redis holds in each test: user 1 follows three others.
redis({
  "user:1": { country: "US" },
  "follow:1": [2, 3, 4],
  "user:2": { country: "US" },
  "user:3": { country: "DE" },
  "user:4": { country: "CA" },
});

test("users of the US and of Canada, the largest id first", () => {
  expect(rank({ user_id: 1 })).ids(4, 2).row(4, { country: "CA", score: 2 });
});

test("a weight turns the order round", () => {
  expect(rank({ user_id: 1, param_overrides: { weight: -1 } })).before(2, 4);
});

test("three users at most", () => {
  redis({ "follow:1": [2, 4, 5, 6, 7], "user:5": { country: "US" }, "user:6": { country: "US" }, "user:7": { country: "US" } });
  forUsers(1, 7, (user) => {
    const answer = rank({ user_id: user });
    expect(answer).sorted("score", "desc").count(user === 1 ? 3 : 0);
  });
});
