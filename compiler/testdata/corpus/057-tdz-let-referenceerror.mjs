const order = [];
function readConfig() {
  order.push('read');
  return settings.size * 2;
}
order.push('start');
const derived = () => readConfig();
export default function () {
  const first = derived();
  return [first, order];
}
const settings = Object.freeze({ size: 21, get half() { return missing; } });
order.push('end ' + derived());
let check = (() => { const before = settings.half; let missing = before; return missing; })();
const missing = check;
