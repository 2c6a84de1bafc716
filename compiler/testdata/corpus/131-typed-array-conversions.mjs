const inputs = [0, -0, 1.9, -1.9, 127, 128, 255, 256, -1, -129, 65536, 2 ** 31, 2 ** 32 + 1, 1e20, NaN, Infinity, '12', null, undefined, true, 0.5, 1.5, 2.5, 254.5];
const kinds = [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array];
const table = Object.fromEntries(kinds.map((K) => [K.name, Array.from(K.from(inputs, Number))]));
export default function () {
  const f32 = new Float32Array([0.1, 16777217, 1e-46, 3.5e38, -0]);
  const big = new BigInt64Array([2n ** 63n, -1n]), ubig = new BigUint64Array([-1n, 2n ** 64n + 5n]);
  const err = (f) => { try { return f(); } catch (e) { return e.name; } };
  return { table, f32: Array.from(f32), big: Array.from(big), ubig: Array.from(ubig), errs: [err(() => { new Uint8Array(1)[0] = 1n; }), err(() => { big[0] = 1; }), err(() => new Uint8Array(-1)), err(() => Uint8Array(2)), err(() => new Uint8Array([Symbol()])), err(() => new Int32Array(new ArrayBuffer(5)))], meta: kinds.map((K) => K.BYTES_PER_ELEMENT).join(), oob: (() => { const a = new Uint8Array(2); a[5] = 1; a[-1] = 2; a['1.5'] = 3; a.foo = 4; return [a[5], a[-1], a['1.5'], Object.keys(a), 5 in a, '-0' in a]; })() };
}
