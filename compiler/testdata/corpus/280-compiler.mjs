export default function () {
let x = 1e20; x |= 0; let y = 1e20; y >>>= 0; let z = [2 ** 64 + 2 ** 40]; z[0] >>>= 1; return [x, y, z]
}
