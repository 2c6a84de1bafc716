export default function () {
let s = ""; outer: for (let i = 0; i < 3; i++) { for (let j = 0; ; j++) { if (j === 2) continue outer; if (i === 2) break outer; s += i + "" + j + " " } } return s
}
