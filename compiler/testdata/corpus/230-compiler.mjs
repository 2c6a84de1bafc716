export default function () {
switch ("x") { default: return 1 + 1; case "y" + "z": return 2 }
}
