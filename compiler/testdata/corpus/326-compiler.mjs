export default function () {
const f = (x) => { switch (true) { case x < 0: return "neg"; case x === 0: return "zero"; default: return x > 100 ? "big" : "pos" } }; return [-1, 0, 5, 101].map(f)
}
