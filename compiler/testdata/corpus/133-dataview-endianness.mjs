const buf = new ArrayBuffer(16);
const dv = new DataView(buf);
dv.setInt32(0, 0x12345678); dv.setInt32(4, 0x12345678, true); dv.setFloat32(8, -1.5); dv.setUint16(12, 65537); dv.setInt8(14, 200); dv.setUint8(15, -1);
const bytes = Array.from(new Uint8Array(buf));
const hex = (view) => Array.from(view, (b) => b.toString(16).padStart(2, '0')).join('');
export default function () {
  const d2 = new DataView(new ArrayBuffer(8)), u8 = new Uint8Array(d2.buffer);
  const dump = (fn) => { u8.fill(0); fn(); return hex(u8); };
  const err = (f) => { try { return f(); } catch (e) { return e.name; } };
  const doubles = [0, -0, 1, -2.5, 0.1, Infinity, NaN, 5e-324, 1.7976931348623157e308].map((x) => dump(() => d2.setFloat64(0, x)));
  const bigs = [1n, -1n, 2n ** 63n].map((x) => dump(() => d2.setBigInt64(0, x, true)));
  d2.setBigUint64(0, 0x0102030405060708n);
  return { bytes, reads: [dv.getInt32(0), dv.getInt32(0, true), dv.getUint16(1), dv.getInt16(2, true), dv.getFloat32(8), dv.getInt8(14), dv.getUint8(15), dv.getUint32(12), dv.getUint32(12, true)], doubles, bigs, big: [d2.getBigInt64(0, true), d2.getUint32(0, true), d2.getFloat64(0) < 1e-300], errs: [err(() => dv.getInt32(13)), err(() => dv.getInt8(-1)), err(() => dv.setInt8(16, 1)), err(() => new DataView(buf, 17)), err(() => new DataView({})), err(() => dv.setBigInt64(0, 1)), err(() => DataView(buf))], sub: [new DataView(buf, 4, 4).getInt32(0, true), new DataView(buf, 4).byteLength, new DataView(buf, 2, 3).byteOffset], undef: dump(() => d2.setInt16(1)), float: dump(() => d2.setUint8('3', 3.99)) };
}
