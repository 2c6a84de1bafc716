export default function () {
let x = { y: 1 }; delete x.y; return ["y" in x, delete x.z, void 0 === undefined]
}
