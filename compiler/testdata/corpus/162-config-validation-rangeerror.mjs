const schema = { width: [1, 4096], depth: [1, 12], ratio: [0, 1] };
const check = (cfg) => Object.entries(schema).map(([k, [lo, hi]]) => { const v = cfg[k]; if (!(v >= lo && v <= hi)) throw new RangeError(`${k}=${v} not in [${lo}, ${hi}]`); return `${k}:${v}`; });
const good = check({ width: 640, depth: 3, ratio: 0.5 });
export default function () {
  return [good, check({ width: 1, depth: 12, ratio: NaN })];
}
