import { expect, rank, redis, sortedSet, test } from "@ranking-dsl/test";

const products = ["hat", "coat", "scarf", "socks"];
redis({ "best:clothes": sortedSet(Object.fromEntries(products.map((id, i) => [id, i]))) });
redis(Object.fromEntries(products.map((id, i) => [`product:${id}`, { name: id, brand: id, category: id, price: 10 + i, rating: 4, sold: 50, stock: 1, added: 0 }])));

test("pages share no product and miss none", () => {
  const page = (offset: number) => rank({ user_id: "u-1", context: { in_category: "clothes", offset, page_size: 2 } }).candidates.map((row) => row.id);
  expect([...page(0), ...page(2)].sort()).equals([...products].sort());
});

test("an unknown category is empty", () => {
  expect(rank({ user_id: "u-1", context: { in_category: "cars" } })).ids();
});
