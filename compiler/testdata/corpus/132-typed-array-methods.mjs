const a = Int16Array.of(5, 3, 9, -1, 3);
const shared = a.subarray(1, 3);
shared[0] = 100;
const basic = [a.join(), a.length, shared.byteOffset, Array.from(a.slice(-2)), a.indexOf(3), a.includes(-1), Array.from(a.toSorted()), Array.from(a.with(0, 7)), Array.from(a.toReversed())];
export default function () {
  const f = Float64Array.from([3, NaN, -0, 0, -Infinity, 1]); f.sort();
  const set = new Uint8Array(5); set.set([1, 2]); set.set(Uint8Array.of(300, 400), 3);
  const err = (fn) => { try { return fn(); } catch (e) { return e.name; } };
  const over = Uint8Array.of(1, 2, 3, 4, 5); over.set(over.subarray(0, 3), 1); 
  const cw = Uint8Array.of(1, 2, 3, 4, 5).copyWithin(0, 2);
  const m = Uint8Array.of(100, 200).map((x) => x * 2), filt = a.filter((x) => x > 4);
  const desc = Uint8Array.of(1, 10, 2).sort((x, y) => y - x);
  return { basic, f: Array.from(f), set: Array.from(set), setErr: [err(() => set.set([1], 5)), err(() => set.set([1], -1)), err(() => set.with(9, 1))], over: Array.from(over), cw: Array.from(cw), m: Array.from(m), mName: m.constructor.name, filt: Array.from(filt), desc: Array.from(desc), fill: Array.from(new Int8Array(4).fill(200, 1, 3)), red: [a.reduce((x, y) => x + y), a.reduceRight((s, x) => s + x, ''), a.at(-1), a.findLast((x) => x > 4), a.findLastIndex((x) => x > 1000)], entries: [...a.subarray(0, 2).entries()], spread: [...new Uint8Array(2), ...Uint8Array.from('12')], str: [String(a), Object.prototype.toString.call(a), JSON.stringify(Uint8Array.of(1, 2)), JSON.stringify([...a])], concat: [].concat(Uint8Array.of(1)).length, isArr: Array.isArray(a), push: typeof a.push, fromIter: Array.from(new Uint8Array(new Set([1, 2, 2]))), like: Array.from(new Uint8Array({ length: 2, 0: 7 })), copyConv: Array.from(new Uint8Array(Float32Array.of(1.7, 257))), frozen: err(() => Object.freeze(new Uint8Array(1))) };
}
