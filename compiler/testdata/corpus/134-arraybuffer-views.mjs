const buf = new ArrayBuffer(8);
const u8 = new Uint8Array(buf), u32 = new Uint32Array(buf, 4, 1), i16 = new Int16Array(buf, 2, 2), f32 = new Float32Array(buf, 0, 1);
f32[0] = 1; u32[0] = 0xdeadbeef;
const snap = () => Array.from(u8);
const first = snap();
i16[1] = -2;
export default function () {
  const cut = buf.slice(2, -2); new Uint8Array(cut)[0] = 99;
  const err = (f) => { try { return f(); } catch (e) { return e.name; } };
  const clone = new Uint8Array(u8); clone[0] = 77;
  const same = new Uint8Array(u8.buffer); same[1] = 55;
  const floatBits = (x) => { const f = new Float32Array([x]); return new Uint32Array(f.buffer)[0]; };
  const bitsFloat = (b) => new Float32Array(new Uint32Array([b]).buffer)[0];
  return { first, after: snap(), cut: [cut.byteLength, Array.from(new Uint8Array(cut))], clone: [clone[0], u8[0], u8[1]], bits: [0, -0, 1, 0.1, Infinity, 1e-45].map(floatBits), back: [0x3f800000, 0x80000000, 0x7f800000, 0x3dcccccd, 1].map(bitsFloat), isView: [ArrayBuffer.isView(u8), ArrayBuffer.isView(new DataView(buf)), ArrayBuffer.isView([]), ArrayBuffer.isView(buf)], errs: [err(() => new Uint32Array(buf, 1)), err(() => new Uint32Array(buf, 4, 2)), err(() => new ArrayBuffer(-1)), err(() => ArrayBuffer(1)), err(() => new Uint16Array(new ArrayBuffer(3)))], meta: [u32.byteOffset, u32.byteLength, u32.buffer === buf, i16.length, buf.byteLength, String(buf)], sub: [u8.subarray(2).byteOffset, u8.subarray(-3, -1).length, u8.subarray(1).subarray(1).byteOffset], fastInvSqrt: (() => { let i = floatBits(4); i = 0x5f3759df - (i >> 1); return bitsFloat(i); })() };
}
