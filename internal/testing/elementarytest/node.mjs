// Prints the rows of the page's table: node node.mjs golden.gz errors.log, where the log is that of go test -v of package elementary.
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

const [, , golden, log] = process.argv;
const errors = new Map();
for (const [, name, worst, other] of readFileSync(log, "utf8").matchAll(/error of (\w+): (\S+) at .*; not the nearest double: (\d+) of/g)) {
  errors.set(name, [Number(worst), Number(other)]);
}
const data = gunzipSync(readFileSync(golden));
const view = new DataView(data.buffer, data.byteOffset, data.length);
const percent = (n, of) => (n === 0 ? "0" : `${((100 * n) / of).toFixed(2)} %`);
for (let at = 0; at < data.length; ) {
  const length = view.getUint8(at);
  const name = data.toString("latin1", at + 1, at + 1 + length);
  const operands = view.getUint8(at + 1 + length);
  const n = view.getUint32(at + 2 + length, true);
  at += 6 + length;
  let other = 0;
  for (let i = 0; i < n; i++) {
    const args = Array.from({ length: operands }, (_, k) => view.getFloat64(at + 8 * (k * n + i), true));
    if (!Object.is(Math[name](...args), view.getFloat64(at + 8 * (operands * n + i), true))) other++;
  }
  at += (8 * (operands + 1) + 2) * n;
  const here = errors.get(name);
  if (here) console.log(`| \`${name}\` | ${(Math.ceil(here[0] * 1000) / 1000).toFixed(3)} | ${percent(here[1], n)} | ${percent(other, n)} |`);
}
