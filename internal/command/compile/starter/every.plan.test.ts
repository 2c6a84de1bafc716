import { expect, rank, redis, test } from "@ranking-dsl/test";

// What Redis holds in each test: user 1 follows three others.
redis({ "follow:1": [4, 2, 3] });

test("the first of each two rows", () => {
  expect(rank({ user_id: 1 })).ids(4, 3);
});
