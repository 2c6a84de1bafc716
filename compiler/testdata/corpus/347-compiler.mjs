export default function () {
return "The quick brown fox".split(" ").map((w) => w[0].toUpperCase() + w.slice(1).toLowerCase()).reduce((a, w, i) => a + (i % 2 ? w : w.length), "")
}
