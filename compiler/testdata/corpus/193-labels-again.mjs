// A label names a statement around it, so a sibling of that name may come again.
export default function () {
  const log = [];
  again: for (let i = 0; i < 2; i++) { log.push(i); if (i) break again; }
  again: for (let i = 5; i > 0; i--) { if (i % 2) continue again; log.push(i); }
  const f = () => { again: do { log.push("f"); } while (log.length < 7 && !log.includes("g")); };
  f();
  for (var k in { a: 1, b: 2, c: 3 }) { skip: { if (k === "b") break skip; log.push(k); } }
  return log;
}
