import { expect, now, rank, redis, sortedSet, test } from "@ranking-dsl/test";

const noon = 1772366400; // 2026-03-01, 12:00 UTC
now(noon);

// An article with 98 likes.
const article = (title: string, hours: number, more = {}) => ({ title, topic: "cats", lang: "en", c_ts: noon - hours * 3600, likes: 98, ...more });

redis({
  "inbox:1": sortedSet({ 1: 1, 2: 2, 3: 3 }),
  "article:1": article("New", 0),
  "article:2": article("This morning", 4, { lang: "de", tags: "long-read" }),
  "article:3": article("Yesterday", 24, { topic: "dogs", premium: "true" }),
});

test("half as much after twelve hours", () => {
  expect(rank({ user_id: 1, context: { subscriber: true } })).ids(1, 2, 3).column("score", [Math.log(100), Math.log(100) * 0.5 ** (1 / 3), Math.log(100) / 4]);
});

test("premium articles are for subscribers", () => {
  expect(rank({ user_id: 1 })).lacks(3);
});

test("the page, the reader and the evening lift what fits them", () => {
  expect(rank({ user_id: 1, context: { lang: "de" } })).ids(2, 1);
  expect(rank({ user_id: 1, context: { hour: 20 } })).ids(2, 1);
  expect(rank({ user_id: 1, context: { hour: 9 } })).ids(1, 2);
  expect(rank({ user_id: 1, context: { topic: "dogs", subscriber: true } })).row(3, { score: Math.log(100) / 2 });
});

test("nobody sees an article again", () => {
  expect(rank({ user_id: 1, context: { seen: [1] } })).ids(2);
});

test("a page has ten articles", () => {
  const ids = Array.from({ length: 30 }, (_, i) => 100 + i);
  redis({ "inbox:2": sortedSet(Object.fromEntries(ids.map((id) => [id, id]))) });
  redis(Object.fromEntries(ids.map((id) => [`article:${id}`, article(`Article ${id}`, id / 10)])));
  expect(rank({ user_id: 2 })).count(10).sorted("score", "desc").ids(ids.slice(0, 10));
});

test("the page is as it was", () => {
  expect(rank({ user_id: 1, context: { subscriber: true, topic: "cats", hour: 20 } })).snapshot();
});
