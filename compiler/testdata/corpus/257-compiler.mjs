export default function () {
return typeof typeof (1 + 1) + (typeof (() => 1) === "function")
}
