import { expect, rank, redis, test } from "@ranking-dsl/test";

redis({ "user:1": { country: "US" }, "follow:1": [7, 7, 8], "follow:7": [1, 2], "follow:8": [] });

test("each row once", () => {
  expect(rank({ user_id: 1 })).ids(7, 8);
});
