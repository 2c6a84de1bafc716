export default function () {
switch (3) { case 1: return "a"; case 1 + 2: case 9: { let x = 1; return "b" + x } default: return "c" }
}
