const widths = [0, 20, 100];
const ok = widths.map((w) => (1 / 3).toFixed(w).length);
export default function () {
  if (ok[2] !== 102) return ok;
  return (1.5).toFixed(101);
}
