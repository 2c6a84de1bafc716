export default function () {
return ("x").repeat(-1)
}
