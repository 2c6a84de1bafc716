const nested = [1, [2, [3, [4, [5]]]], , 'x'];
const flats = [nested.flat(), nested.flat(2), nested.flat(Infinity), nested.flat(0).length, nested.flat(-1).length].map((x) => (Array.isArray(x) ? JSON.stringify(x) : x));
const fm = [1, 2, 3].flatMap((x) => (x % 2 ? [x, [x * 10]] : []));
export default function () {
  const h = [, 'a', , undefined];
  const list = (arr) => { const r = []; for (let i = 0; i < arr.length; i++) r.push(i in arr ? 'v' : '-'); return r.join(''); };
  return { flats, fm, str: 'a b,c'.split(',').flatMap((s) => s.split(' ')), holes: { len: h.length, keys: Object.keys(h), of: [...h], join: h.join('|'), str: String([1, , null, undefined, 2]), forIn: (() => { const k = []; for (const i in h) k.push(i); return k; })(), entries: [...h.entries()].length, indexOf: h.indexOf(undefined), includes: h.includes(undefined), lastIndexOf: h.lastIndexOf(undefined), filter: h.filter(() => true), flat: h.flat().length, concat: list(h.concat(h)), slice: list(h.slice(1)), sort: list([...'b', , 'a'].sort()), map: list(h.map((x) => x)), from: list(Array.from(h)), of: list(Array.of(...h)), json: JSON.stringify(h) }, ctor: [list(Array(3)), list(new Array(2, 1)), list(Array.apply(null, Array(2))), Array(3).join('-'), Array('3').length], trailing: [[1, , ].length, [, ].length, [, , 1].length], at: h.at(-4), copy: list([, 1, ,].copyWithin(0, 1)), del: (() => { const d = [1, 2, 3]; delete d[2]; return [d.length, list(d)]; })(), every: [, ,].every(() => false), spliced: list([1, , 3, , 5].splice(1, 3)), deep: [[[]], [[[], 1]]].flat(3) };
}
