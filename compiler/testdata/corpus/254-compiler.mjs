export default function () {
let n = 0; for (;;) { if (++n > 3) break } for (let i = 0, j = 9; i < j; i++, j--) n += j - i; return n
}
