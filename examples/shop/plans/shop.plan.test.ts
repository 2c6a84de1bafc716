import { expect, forUsers, now, rank, redis, set, sortedSet, test } from "@ranking-dsl/test";

const day = 24 * 3600; // seconds
const today = 1772366400; // 2026-03-01, 12:00 UTC
now(today);

const product = (name: string, more = {}) => ({
  name, brand: name, category: name, price: 20, rating: 4, sold: 100, stock: 5, added: today - 3 * day, ...more,
});

redis({
  added: sortedSet({ hat: today - 3 * day, coat: today - 5 * day, old: today - 30 * day, empty: today - day }),
  "viewed:u-1": ["coat"],
  "also:coat": ["coat", "scarf"],
  deals: sortedSet({ scarf: 0.5 }),
  "user:u-1": { budget: 50 },
  "product:hat": product("Hat"),
  "product:coat": product("Coat"),
  "product:scarf": product("Scarf"),
  "product:old": product("Old", { added: today - 30 * day }),
  "product:empty": product("Empty", { stock: 0 }),
});

test("the page shows what is new and what goes with what the user has seen", () => {
  const answer = rank({ user_id: "u-1" });
  expect(answer).shelves("home", "deals").complete();
  expect(answer).shelf("home").count(3).contains("hat", "coat", "scarf").lacks("old", "empty").row("coat", { source: ["new", "similar"] });
  expect(answer).shelf("deals").ids("scarf");
});

test("what the user has bought does not come again", () => {
  redis({ "bought:u-1": set(["hat"]) });
  expect(rank({ user_id: "u-1" })).shelf("home").lacks("hat");
});

test("two products of a brand do not stand side by side", () => {
  forUsers(1, 10, (user) => {
    redis({ "product:hat": product("Hat", { brand: "Coat", sold: user * 100 }), [`viewed:u-${user}`]: ["coat"] });
    const [first, second] = rank({ user_id: `u-${user}` }).outputs.home;
    expect(first.brand === second.brand).equals(false);
  });
});

test("the page goes on without the user's budget", () => {
  redis({ "user:u-1": "gone" });
  const answer = rank({ user_id: "u-1" });
  expect(answer.outputs.home.length).equals(3);
  expect(Object.values(answer.completeness ?? {}).some((node) => node.status === "failed")).equals(true);
});
