export default function () {
  const log = [];
  rows: for (const row of [[1, 2], [3, -1, 4], [], [5]]) {
    try {
      for (const cell of row) {
        if (cell < 0) continue rows;
        log.push(cell);
      }
      log.push("end");
    } finally {
      log.push("f" + row.length);
    }
  }
  const inner = () => { a: try { break a; } finally { return "finally wins"; } };
  once: for (;;) { try { continue once; } finally { log.push("left"); break once; } }
  return [log, inner()];
}
