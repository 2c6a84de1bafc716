const table = new Uint32Array(256);
for (let n = 0; n < 256; n++) { let c = n; for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1; table[n] = c; }
const bytes = (s) => Uint8Array.from(encodeURIComponent(s).match(/%..|./g) ?? [], (t) => (t.length > 1 ? parseInt(t.slice(1), 16) : t.charCodeAt(0)));
const crc32 = (s) => { let c = -1; for (const b of bytes(s)) c = table[(c ^ b) & 255] ^ (c >>> 8); return (c ^ -1) >>> 0; };
const adler = (s) => { let a = 1, b = 0; for (const x of bytes(s)) { a = (a + x) % 65521; b = (b + a) % 65521; } return ((b << 16) | a) >>> 0; };
const fnv1a = (s) => { let h = 0x811c9dc5; for (const x of bytes(s)) { h ^= x; h = Math.imul(h, 0x01000193); } return h >>> 0; };
const murmurMix = (h) => { h ^= h >>> 16; h = Math.imul(h, 0x85ebca6b); h ^= h >>> 13; h = Math.imul(h, 0xc2b2ae35); return (h ^ (h >>> 16)) >>> 0; };
const words = ['', 'a', '123456789', 'héllo \u{1F600}'];
const sums = words.map((w) => [crc32(w), adler(w), fnv1a(w)]);
export default function () {
  const b64c = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const b64 = (s) => { const u = bytes(s); let o = ''; for (let i = 0; i < u.length; i += 3) { const n = (u[i] << 16) | (u[i + 1] << 8) | u[i + 2]; o += b64c[n >> 18] + b64c[(n >> 12) & 63] + (i + 1 < u.length ? b64c[(n >> 6) & 63] : '=') + (i + 2 < u.length ? b64c[n & 63] : '='); } return o; };
  return { sums, t: [table[1], table[255]], mix: [0, 1, 0xffffffff].map(murmurMix), b64: words.map(b64), utf8: Array.from(bytes('é€')) };
}
