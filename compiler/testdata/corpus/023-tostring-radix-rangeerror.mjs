const good = [2, 36].map((r) => (35).toString(r));
let radix = 36;
export default function () {
  const out = [...good];
  while (true) {
    out.push((35).toString(radix));
    radix++;
  }
}
