function* pairs(list) {
  all: for (const a of list) {
    for (const b of list) {
      if (b === a) continue all;
      const more = yield [a, b];
      if (more === false) break all;
    }
  }
  return "over";
}
export default function () {
  const all = [...pairs("abcd")].map((p) => p.join(""));
  const it = pairs([1, 2, 3]);
  const some = [it.next().value, it.next(true).value, it.next(false)];
  const open = [];
  const source = { *[Symbol.iterator]() { try { yield 1; yield 2; } finally { open.push("closed"); } } };
  out: for (const x of source) { for (const y of source) { open.push(x + y); break out; } }
  return [all, some, open];
}
