export default function () {
if (1 > 2) return "a"; else if (2 > 1) return "b"; else return "c"
}
