export default function () {
let s = 0; do { if (s === 3) break; s++ } while (s < 10 && s !== 5); while (s > 0 ? s-- : false); return s
}
