export default function () {
let x = 1; x += 2; x *= 3; x -= 4; x /= 5; x **= 2; x %= 3; x <<= 2; x |= 1; x &= 7; x ^= 2; x >>= 1; x >>>= 0; return x
}
