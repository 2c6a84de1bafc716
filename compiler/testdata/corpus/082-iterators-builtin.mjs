const arr = ['a', 'b'];
const map = new Map([['k', 1], ['l', 2]]);
const lists = [[...arr.keys()], [...arr.entries()], [...map.keys()], [...map.entries()], [...map.values()], [...new Set('aab').entries()]];
const growing = [1, 2];
let rounds = 0;
for (const x of growing) { if (x < 3) growing.push(x + 2); rounds++; }
export default function () {
  const seen = [];
  for (const [k, v] of map) { seen.push(k); if (k === 'k') { map.delete('l'); map.set('m', 3); map.delete('k'); map.set('k', 9); } if (seen.length > 4) break; }
  const it = arr[Symbol.iterator]();
  it.next();
  const rest = [...it, ...it];
  const shrink = [1, 2, 3, 4]; const got = [];
  for (const x of shrink) { got.push(x); shrink.pop(); }
  const ip = Object.getPrototypeOf(Object.getPrototypeOf(it));
  return { lists, growing, rounds, seen, rest, got, tags: [arr.keys(), map.keys(), new Set().values()].map((i) => i[Symbol.toStringTag]), alias: [Array.prototype[Symbol.iterator] === Array.prototype.values, Map.prototype[Symbol.iterator] === Map.prototype.entries, Set.prototype.keys === Set.prototype.values], shared: ip === Object.getPrototypeOf(Object.getPrototypeOf((function* () {})())) || typeof ip[Symbol.iterator], holes: [...[, 1].entries()] };
}
