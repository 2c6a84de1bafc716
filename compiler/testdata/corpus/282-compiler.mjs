export default function () {
return [5n | 3n, -5n >> 1n, ~5n, 2n ** 70n & 255n, (() => { try { return 1n | 1 } catch (e) { return e.name } })()]
}
