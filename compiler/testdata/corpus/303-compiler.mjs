export default function () {
return [JSON.stringify({ a: [1, undefined, () => 1], b: undefined, c: NaN, d: new Map(), e: { toJSON() { return "j" } } }), JSON.stringify([1, [2]], null, 2), JSON.stringify({ a: 1, b: 2 }, ["b"]), JSON.stringify({ a: 1 }, (k, v) => k ? v + 1 : v), JSON.stringify(undefined)]
}
