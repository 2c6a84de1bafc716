export default function () {
let s = 0; for (let i = 0; i < 10; i++) { if (i % 2 == 0) continue; if (i > 7) break; s += i } return s
}
