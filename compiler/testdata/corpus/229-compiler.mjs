export default function () {
switch (1 + 1) { case 1: return "one"; case 4 - 2: { return "two" } default: return "many" }
}
