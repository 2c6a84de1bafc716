export default function () {
const t = new Int32Array(3); t[0] = 1e20; t[1] = -1e20; t[2] = 2 ** 31; const u = new Uint8Array(1); u[0] = 1e20; const f = new Float64Array(1); f[0] = 1e20; return [...t, ...u, ...f]
}
