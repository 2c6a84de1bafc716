import { expect, forUsers, now, rank, redis, sortedSet, test } from "@ranking-dsl/test";

const hour = 3600; // seconds
const noon = 1772366400; // 2026-03-01, 12:00 UTC
now(noon);

// A post that half of its readers liked.
const post = (title: string, author: string, hours: number, more = {}) => ({
  title, author, author_id: author.length, topic: "cats", c_ts: noon - hours * hour, likes: 100, views: 200, ...more,
});

redis({
  "inbox:1": [11, 12, 13],
  "post:11": post("Monday", "Ann", 1),
  "post:12": post("Tuesday", "Bert", 25),
  "post:13": post("Wednesday", "Clara", 2),
  "post:21": post("Popular", "Doris", 3),
  "popular:DE": sortedSet({ 21: 9, 13: 4 }),
});

test("a day halves the score of a post", () => {
  expect(rank({ user_id: 1 })).ids(11, 13, 12).row(12, { author: "Bert" });
});

test("what many like is there for those of the country, behind two posts that the user follows", () => {
  const answer = rank({ user_id: 1, context: { country: "DE" } });
  expect(answer).ids(13, 11, 21, 12).row(13, { source: ["follow", "popular"] });
  expect(rank({ user_id: 1, context: { country: "FR" } })).lacks(21);
});

test("a close author comes first", () => {
  redis({ "friends:1": sortedSet({ 4: 9 }) });
  expect(rank({ user_id: 1 })).before(12, 11);
});

test("muted authors, and what was seen this week, stay away", () => {
  redis({ "seen:1": sortedSet({ 13: noon - hour, 12: noon - 8 * 24 * hour }) });
  expect(rank({ user_id: 1, context: { muted: ["Ann"] } })).ids(12);
});

test("no author has two of five posts", () => {
  redis(Object.fromEntries([1, 2, 3, 4, 5].map((i) => [`post:3${i}`, post(`More ${i}`, i < 3 ? "Ann" : `Author ${i}`, i)])));
  redis({ "inbox:2": [31, 32, 33, 34, 35] });
  const answer = rank({ user_id: 2 });
  expect(answer).count(5).before(33, 32);
});

test("nobody gets a post twice", () => {
  forUsers(1, 20, (user) => {
    redis({ [`inbox:${user}`]: [11, 12, user % 2 ? 13 : 21], "popular:DE": sortedSet({ 11: 2, 21: 1 }) });
    const ids = rank({ user_id: user, context: { country: "DE" } }).candidates.map((row) => row.id);
    expect(new Set(ids).size).equals(ids.length);
  });
});
